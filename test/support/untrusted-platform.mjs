// Sends a request to a platform with an untrusted certificate, and prints the outcome. Node runs it with its checks of
// certificates turned off.
import { once } from 'node:events';
import { createServer, get } from 'node:https';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { Attempt, waysOf } = require('../../dist/src/platform/http/connections.js');
const [key, cert] = JSON.parse(process.argv[2]);

const server = createServer({ key, cert }, (_request, response) => response.end()).listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `https://127.0.0.1:${server.address().port}`;
const usual = new Promise((resolve, reject) => {
  get(url, ({ statusCode }) => resolve(statusCode)).once('error', reject);
});
const attempt = new Attempt(waysOf({ NO_PROXY: [] }, {}), new AbortController().signal);
const ours = attempt.send({ url }).then(
  ({ status }) => status,
  ({ code }) => code,
);
console.log(JSON.stringify({ usual: await usual, ours: await ours }));
process.exit(0);
