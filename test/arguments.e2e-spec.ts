import { execFile } from 'node:child_process';

/** What a command of package.json prints, and how it ends. */
function run(...args: string[]): Promise<{ code: number; printed: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ['scripts/run.mjs', ...args], (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, printed: stdout + stderr }),
    );
  });
}

test.each([
  ['demo', '--onec', '✗ Unknown argument --onec: say --once, or nothing.\n'],
  ['simulator', '--port', '✗ Unknown argument --port: its settings stand in the environment.\n'],
  ['start', 'migrte', '✗ Unknown argument migrte: say migrate, or nothing.\n'],
])('npm run %s refuses %s: a misspelt word is not passed over', async (command, word, said) => {
  expect(await run(command, word)).toEqual({ code: 1, printed: said });
});
