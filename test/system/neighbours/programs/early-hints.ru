run lambda { |env|
  env['rack.early_hints'].call('Link' => '</style.css>; rel=preload; as=style')
  [200, { 'Content-Type' => 'text/plain', 'X-Final' => 'yes' }, ['puma']]
}
