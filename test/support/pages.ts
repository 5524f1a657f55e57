import { readFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(__dirname, '../..');

/** A file of the project. */
export const readPage = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

/** The blocks of a page in one language, in order. */
export const blocksOf = (page: string, language: string): string[] =>
  [...page.matchAll(new RegExp(`^ *\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\`$`, 'gm'))].map(([, block = '']) => block);

/** The commands of notebridge in the text of pages. */
export const commandsIn = (text: string): string[] => [
  ...new Set([...text.matchAll(/`(npx notebridge [^`]+)`/g)].map(([, command = '']) => command)),
];
