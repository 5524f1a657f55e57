// Sends a request to a platform with an untrusted certificate, and prints the outcome. Node runs it with its checks of
// certificates turned off.
import { once } from 'node:events';
import { createServer } from 'node:https';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { ConnectionWatch, resettableAgents } = require('../../dist/src/platform/http/connections.js');
const [key, cert] = JSON.parse(process.argv[2]);

const server = createServer({ key, cert }, (_request, response) => response.end()).listen(0, '127.0.0.1');
await once(server, 'listening');
const ask = (agent) =>
  new Promise((resolve) => {
    const options = { protocol: 'https:', host: '127.0.0.1', port: server.address().port, agent };
    const request = new ConnectionWatch(() => undefined).request(options, ({ statusCode }) => resolve(statusCode));
    request.once('error', ({ code }) => resolve(code)).end();
  });
console.log(JSON.stringify({ usual: await ask(undefined), ours: await ask(resettableAgents({}).httpsAgent) }));
process.exit(0);
