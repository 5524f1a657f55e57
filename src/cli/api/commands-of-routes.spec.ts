import { withCommands } from './commands-of-routes.js';

test.each([
  ['No delivery has this id. GET /v1/webhook-deliveries lists them.', 'npx notebridge deliveries lists them.'],
  ['GET /v1/webhook-deliveries?state=not-understood lists', 'npx notebridge deliveries --state not-understood lists'],
  ['POST /v1/compliance/upload-url.', 'POST /v1/compliance/upload-url.'],
  ['GET /v1/nothing-known', 'GET /v1/nothing-known'],
])('withCommands: %s', (text, named) => {
  expect(withCommands(text)).toContain(named);
});
