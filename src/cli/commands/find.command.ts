import { text as textOf } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { FindResponse, FoundResponse } from '../../search/search.dto.js';
import type { Api } from '../api/api.js';
import { examples } from '../output/help.js';
import { lines, printAnswer, table } from '../output/print.js';

/** `notebridge find`. */
export function addFindCommand(program: Command, api: Api): void {
  program
    .command('find')
    .description('find people, sessions, imports, deliveries and compliance jobs by a whole id, and people by email')
    .argument(
      '<text>',
      'a whole id or email; - reads it from standard input, so that your shell keeps no email in its history',
    )
    .option('--json', "print the service's answer")
    .addHelpText('after', examples('find C-1', 'find - < email.txt'))
    .action(async (given: string, { json }: { json?: boolean }) => {
      const text = given === '-' ? await textOf(process.stdin) : given;
      printAnswer(await api.post<FindResponse>('/v1/search', { text: text.trim() }), json, foundLines);
    });
}

function foundLines({ items, more }: FindResponse): string {
  if (items.length === 0) return 'Nothing has exactly this id or email. Names are encrypted and cannot be searched.';
  return lines(table(items.map(foundRow)), more && 'There are more: list them by their own command.');
}

const foundRow = ({ kind, id, state, matched, updatedAt }: FoundResponse) => ({ kind, id, state, matched, updatedAt });
