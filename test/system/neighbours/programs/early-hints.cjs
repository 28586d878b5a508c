const { createServer } = require('node:http');
createServer((_req, res) => {
  res.writeProcessing();
  res.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' });
  res.setHeader('X-Final', 'yes');
  res.end('node');
}).listen(process.argv[2], '127.0.0.1');
