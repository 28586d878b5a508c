require 'json'
require 'rack'

$stdin.each_line(chomp: true) do |line|
  read = begin
    Rack::Utils.parse_nested_query(line)[ARGV[0]]
  rescue StandardError
    nil
  end
  puts(read.is_a?(String) ? read.scrub.to_json : read.to_json)
end
