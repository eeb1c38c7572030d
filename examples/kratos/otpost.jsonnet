// The body of a courier channel of Ory Kratos, for a relay of the kind kratos: courier.channels[].request_config.body.
// Kratos names the code after what it is for. Messages about an attempt that is not valid have none.
function(ctx)
  local data = std.get(ctx, 'template_data', {});
  local codes = [
    std.get(data, name)
    for name in ['login_code', 'registration_code', 'verification_code', 'recovery_code']
    if std.get(data, name, '') != ''
  ];
  {
    recipient: ctx.recipient,
    template_type: ctx.template_type,
    body: std.get(ctx, 'body', ''),
    [if std.length(codes) > 0 then 'code']: codes[0],
  }
