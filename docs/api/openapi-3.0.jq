# Converts the OpenAPI 3.1 document of /openapi.json to OpenAPI 3.0 for generators that do not read 3.1.
# It removes rules that many generators do not support, such as "phone or email is required". The server checks them.

# The name of the schema that a reference is to, else null.
def schema_name:
  (.["$ref"]? // "") | if startswith("#/components/schemas/") then ltrimstr("#/components/schemas/") else null end;

def error: {"$ref": "#/components/schemas/Error"};

def simplify:
  if type != "object" then .
  elif any((.allOf, .anyOf | arrays[]); . == error) then error
  else
    if .type? == "boolean" then del(.const, .enum) else . end
    | if has("const") then .enum = [.const] | del(.const) else . end
    # Generated Python has each pattern between quotation marks.
    | if (.pattern? | type) == "string" and (.pattern | contains("\"")) then del(.pattern) else . end
    | if (.type? | type) == "array" then .nullable = true | .type = (.type - ["null"])[0] else . end
    | ([.anyOf? | arrays[] | select(.type? != "null" and del(.description) != {})] | unique) as $alternatives
    | if ($alternatives | length) == 1 then del(.anyOf) + $alternatives[0] else . end
  end;

# The elements of all lists.
def common: reduce .[1:][] as $next (.[0] // []; . - (. - $next));

# An object with the properties of all alternatives. Required are those that every alternative requires.
def merged($schemas):
  if schema_name then $schemas[schema_name] | merged($schemas)
  else
    . as $own
    | [$own.allOf | arrays[] | merged($schemas)] as $parts
    | [$own.anyOf | arrays[] | merged($schemas)] as $alternatives
    | reduce ($own, $parts[], $alternatives[] | .properties // {} | to_entries[] | select(.value.type != "null"))
        as {$key, $value} ({};
          if .[$key].enum and $value.enum then .[$key].enum |= (. + $value.enum | unique)
          elif .[$key].properties and $value.properties
          then .[$key] = ({description: $value.description, anyOf: [.[$key], $value]} | merged($schemas))
          else .[$key] //= $value end)
    | {type: "object", properties: .}
    | .required = ([$own, $parts[] | .required // [] | .[]] + ($alternatives | map(.required // []) | common) | unique)
    | if .required == [] then del(.required) else . end
    | if $own.description then .description = $own.description else . end
  end;

walk(simplify)
| .components.schemas as $schemas
| .components.schemas |= (
    .Error.properties += (.NotificationFailed.properties | del(.success, .error, .message, .requestId))
    | .OtpSendRequest |= merged($schemas)
    | .OtpResendRequest |= merged($schemas)
    | .OtpVerifyRequest |= merged($schemas)
    | .NotifyRequest |= merged($schemas)
    | .NotifyRequest.properties.to.items = {type: "string"}
    | with_entries(select(.key | test("^(Sms|Email|Phone|Text|Template|Html|Outbox|Deferral)|^NotificationFailed$|Event$") | not))
  )
| del(.paths["/outbox/messages"], .webhooks)
# Credentials are in the body: old generators send an empty Authorization header for each scheme.
| del(.paths[][].security, .components.securitySchemes)
| .openapi = "3.0.3"
| del(.info.summary, .info.license.identifier, .jsonSchemaDialect)
