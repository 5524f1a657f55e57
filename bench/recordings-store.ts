// The platform's part of a recording: upload URLs, and a store that accepts bytes and discards them.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const server = createServer((request, response) => {
  if (request.method === 'POST') {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/upload`;
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ url }));
    return;
  }
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  request.once('end', () => {
    const whole = bytes === Number(request.headers['content-length']);
    response.writeHead(whole ? 200 : 400).end();
  });
});

server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
