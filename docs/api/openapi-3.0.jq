# Converts the OpenAPI 3.1 document of /openapi.json to OpenAPI 3.0 for generators that do not read 3.1.
# It removes rules that generators do not use, such as "phone or email is required". The server checks them.

def error: {"$ref": "#/components/schemas/Error"};

def simplify:
  if type != "object" then .
  elif .allOf[0]? == error then error
  else
    del(.if, .then, .else, .not, .patternProperties)
    | if .type? == "boolean" then del(.const, .enum) else . end
    | if has("const") then .enum = [.const] | del(.const) else . end
    | if (.type? | type) == "array" then .nullable = true | .type = (.type - ["null"])[0] else . end
    | if all((.oneOf?, .anyOf?)[]?; has("required")) then del(.oneOf, .anyOf) else . end
    | if all(.allOf?[]?; has("$ref") | not) then del(.allOf) else . end
  end;

# The four bodies of /notify as one, whose required fields are those that all four require.
def notify_request:
  [.components.schemas | .TextSmsRequest, .TemplateSmsRequest, .HtmlEmailRequest, .TemplateEmailRequest]
  | {
      type: "object",
      description: "A notification. The channel and the other fields decide which kind it is.",
      required: (map(.required) | reduce .[1:][] as $next (.[0]; . - (. - $next))),
      properties: (reduce map(.properties)[] as $next ({}; . * $next)
        | .channel.enum = ["SMS", "EMAIL"]
        | .to.items = {type: "string"})
    };

walk(simplify)
| .components.schemas.NotifyRequest = notify_request
| .paths["/notify"].post.requestBody.content["application/json"].schema = {"$ref": "#/components/schemas/NotifyRequest"}
| .components.schemas |= delpaths([["TextSmsRequest"], ["TemplateSmsRequest"], ["HtmlEmailRequest"], ["TemplateEmailRequest"]])
| del(.paths["/outbox/messages"], .components.schemas.OutboxMessages, .components.schemas.OutboxMessage)
| .openapi = "3.0.3"
| del(.info.summary, .info.license.identifier, .jsonSchemaDialect)
