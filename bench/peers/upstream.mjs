/** The upstream where NGINX is not installed: reads the body, then answers. */
import { createServer } from 'node:http';

const [port, body] = process.argv.slice(2);
createServer((req, res) => {
  req.resume().on('end', () => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
  });
}).listen(Number(port), '127.0.0.1');
