require 'rack'
run lambda { |env|
  sent = env['PATH_INFO']
  decoded = Rack::Utils.unescape_path(sent)
  [200, { 'Content-Type' => 'application/octet-stream' }, [[decoded, Rack::Utils.clean_path_info(decoded)].join("\n")]]
}
