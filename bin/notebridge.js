#!/usr/bin/env node
// The notebridge command. An installed copy is already compiled; a clone is compiled by npm run setup.
const { existsSync } = require('node:fs');
const path = require('node:path');

const program = path.resolve(__dirname, '..', 'dist', 'src', 'cli', 'main.js');

if (existsSync(program)) require(program);
else {
  console.error('notebridge is not built yet: run npm run setup in this clone first.');
  process.exitCode = 1;
}
