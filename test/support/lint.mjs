// Lints the snippets that its first argument holds as JSON, [{file, code}], as if they were those files of the
// project. Prints for each the rules that it breaks.
import path from 'node:path';
import { ESLint } from 'eslint';

const root = path.resolve(import.meta.dirname, '../..');
const eslint = new ESLint({ cwd: root });
const broken = [];
for (const { file, code } of JSON.parse(process.argv[2])) {
  const [result] = await eslint.lintText(`${code}\n`, { filePath: path.join(root, file) });
  broken.push(result.messages.map((message) => message.ruleId));
}
console.log(JSON.stringify(broken));
