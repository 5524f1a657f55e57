// The minimum cost of forwarding bytes: a bare Node server that pipes each request into a PUT.
import { createServer, request as open } from 'node:http';
import type { AddressInfo } from 'node:net';

const target = `http://127.0.0.1:${process.env.STORE_PORT}/upload`;

const server = createServer((request, response) => {
  const headers = { 'content-length': request.headers['content-length'] ?? '0' };
  const put = open(target, { method: 'PUT', agent: false, headers }, (answer) => {
    answer.resume();
    response.writeHead(answer.statusCode === 200 ? 201 : 502).end();
  });
  put.once('error', () => response.writeHead(502).end());
  request.pipe(put);
});

server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
