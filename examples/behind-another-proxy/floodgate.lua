-- HAProxy asks Floodgate about each request: "http-request lua.floodgate". Needs HAProxy 2.6 or later with Lua.

local floodgate = os.getenv("FLOODGATE") or "http://127.0.0.1:9091"
-- Milliseconds.
local timeout = 5000
-- If Floodgate does not answer: true lets requests pass, false answers 503.
local pass_without_floodgate = false

-- Header fields for replies to admitted requests. The HAProxy configuration adds them.
local told = {
  ["x-ratelimit-limit"] = "txn.floodgate_limit",
  ["x-ratelimit-remaining"] = "txn.floodgate_remaining",
  ["x-ratelimit-reset"] = "txn.floodgate_reset",
  ["ratelimit-policy"] = "txn.floodgate_policies",
  ["ratelimit"] = "txn.floodgate_limits",
}
-- Fields about the connection, or about a body that is not forwarded.
local not_asked = {
  ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["keep-alive"] = true,
  ["te"] = true, ["trailer"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
  ["host"] = true, ["x-forwarded-host"] = true, ["x-forwarded-proto"] = true,
}

local function question(txn)
  local headers = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    if not not_asked[name] then
      headers[name] = {}
      -- HAProxy's tables begin at 0, those for core.httpclient at 1.
      for i, value in pairs(values) do headers[name][i + 1] = value end
    end
  end
  headers["x-forwarded-method"] = { txn.f:method() }
  headers["x-forwarded-uri"] = { txn.f:pathq() }
  -- Behind another proxy that you trust, prepend its X-Forwarded-For.
  headers["x-forwarded-for"] = { txn.f:src() }
  return headers
end

-- If Floodgate is unreachable, HAProxy's HTTP client returns a 503 of its own.
local function is_from_floodgate(reply)
  local content_type = reply and reply.headers and reply.headers["content-type"]
  return content_type ~= nil and content_type[0] == "application/problem+json"
end

core.register_action("floodgate", { "http-req" }, function(txn)
  local reply = core.httpclient():get({
    url = floodgate .. "/forward-auth", headers = question(txn), timeout = timeout,
  })
  local status = reply and reply.status or 0
  if status >= 200 and status < 300 then
    for name, variable in pairs(told) do
      local values = reply.headers[name]
      if values then txn:set_var(variable, values[0]) end
    end
    return
  end
  if not is_from_floodgate(reply) then
    if pass_without_floodgate then return end
    txn:done(txn:reply({ status = 503 }))
  end
  local answer = txn:reply({ status = status, body = reply.body })
  for name, values in pairs(reply.headers) do
    if not not_asked[name] and name ~= "date" then
      for _, value in pairs(values) do answer:add_header(name, value) end
    end
  end
  txn:done(answer)
end, 0)
