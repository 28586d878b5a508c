require 'json'
require 'digest'

run(lambda do |env|
  request = Rack::Request.new(env)
  case env['PATH_INFO']
  when '/items' then [301, { 'location' => request.url + '/' }, []]
  when '/stream' then [200, { 'content-type' => 'text/plain' }, Enumerator.new { |out| 100.times { |i| out << "line #{i}\n" } }]
  when '/upload'
    file = request.params['f']
    [200, {}, [Digest::SHA256.hexdigest(file[:tempfile].read), ' ', file[:filename]]]
  else
    seen = { path: env['PATH_INFO'], sent: env['REQUEST_PATH'], query: request.params, address: request.url, scheme: request.scheme }
    [200, { 'content-type' => 'application/json', 'set-cookie' => "a=1\nb=2" }, [seen.to_json]]
  end
end)
