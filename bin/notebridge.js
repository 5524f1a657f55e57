#!/usr/bin/env node
// The notebridge command. In a clone it is compiled first when that is due; an installed copy is compiled already.
const { existsSync } = require('node:fs');
const path = require('node:path');

const root = path.resolve(__dirname, '..');

async function main() {
  if (existsSync(path.join(root, 'scripts', 'setup.mjs'))) {
    const { setUp } = await import('../scripts/setup.mjs');
    await setUp();
  }
  require(path.join(root, 'dist', 'src', 'cli', 'main.js'));
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
