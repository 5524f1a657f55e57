// Prepares one start after the other, each with its settings, and prints its final message.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { validateEnv } = require('../../dist/src/config/env.validation.js');
const { prepare } = require('../../dist/src/prepare.js');

for (const settings of JSON.parse(process.argv[2])) {
  const said = await prepare(validateEnv(settings)).then(
    () => 'prepared',
    ({ message }) => message,
  );
  console.log(said);
}
process.exit(0);
