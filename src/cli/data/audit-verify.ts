import 'reflect-metadata';
import { readFile } from 'node:fs/promises';
import type { ChainFault } from '../../audit/chain.js';
import { MAX_FAULTS, type Verification, verifyLog } from '../../audit/verify-log.js';
import { KeyedHashes } from '../../vault/keyed-hashes.js';
import { Macs } from '../../vault/macs.js';
import { CliFault } from '../api/cli-fault.js';
import { counted } from '../output/print.js';
import { rowsWithoutMac } from './all-grants.js';
import { withServiceData } from './service-data.js';

/** A link's number and the MAC of an HMAC-SHA-256 that names its key. */
const HEAD = /^\d+:(?:[0-9a-f]{2}){34,}$/;

/** `notebridge audit verify`: exits 2 if the audit log has faults. */
export async function verify({ heads, json }: { heads?: string; json?: boolean }): Promise<void> {
  const given = heads === undefined ? [] : headsIn(heads, await readFile(heads, 'utf8'));
  const result = await withServiceData(async (client, keys) => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const macs = new Macs(new KeyedHashes(keys.AUDIT_KEYS));
    const verified = await verifyLog(client, macs, given);
    for (const { table, id } of await rowsWithoutMac(client, macs))
      verified.faults.push({ grant: `${table} ${id}`, fault: 'unsigned' });
    return verified;
  });
  console.log(json ? JSON.stringify(result, null, 2) : inWords(result));
  process.exitCode = result.faults.length === 0 ? 0 : 2;
}

/** Reads heads, one a line: as text, or as the member `head` of JSON. Other lines of a log in JSON are skipped. */
function headsIn(file: string, text: string): string[] {
  const lines = text.split('\n').map((line) => line.trim());
  const heads = lines.flatMap((line, at) => {
    if (line === '') return [];
    const head = line.startsWith('{') ? jsonHead(line) : line;
    if (head === undefined) return [];
    // Otherwise a typo would look like a truncated audit log.
    if (!HEAD.test(head))
      throw new CliFault(`Line ${at + 1} of ${file} is not a complete head. Write it as number:MAC.`);
    return [head];
  });
  if (heads.length === 0) throw new CliFault(`${file} contains no head.`);
  return heads;
}

function jsonHead(line: string): string | undefined {
  try {
    const { head } = JSON.parse(line) as { head?: unknown };
    return typeof head === 'string' ? head : undefined;
  } catch {
    return line;
  }
}

const SENTENCES: Record<ChainFault['fault'], (what: string) => string> = {
  changed: (what) => `${what} was changed.`,
  removed: (what) => `${what} was removed.`,
  inserted: (what) => `${what} was inserted: no link names it.`,
  repeated: (what) => `${what} is a copy of another entry, or was linked twice.`,
  misdated: (what) => `${what} has another time than its link: it was reinserted, or a clock was wrong.`,
  unsigned: (what) => `${what} has no valid MAC: it was inserted or changed.`,
  'too-young': (what) => `${what} removed entries before their retention period ended.`,
};

function sentenceOf({ entry, link, cut, head, grant, fault }: ChainFault): string {
  if (head !== undefined) return `✗ The head ${head} is not part of the audit log: later entries were removed.`;
  if (grant !== undefined)
    return `✗ The row ${grant} has no valid MAC, so it grants nothing: it was inserted or changed.`;
  if (cut !== undefined) return `✗ ${SENTENCES[fault](`The removal up to link ${cut}`)}`;
  if (entry === undefined) return `✗ ${SENTENCES[fault](`Link ${link}`)}`;
  return `✗ ${SENTENCES[fault](`Entry ${entry}${link === undefined ? '' : ` of link ${link}`}`)}`;
}

function inWords({ links, entries, unlinked, head, heads, faults }: Verification): string {
  const lines = faults.map(sentenceOf);
  if (faults.length === MAX_FAULTS) lines.push('… and more.');
  const counts = `${counted(entries, 'entry', 'entries')} in ${counted(links, 'link')}`;
  const rest = unlinked === 0 ? '' : ` ${counted(unlinked, 'recent entry', 'recent entries')} not linked yet.`;
  if (faults.length === 0) lines.push(`✓ ${counts}: nothing was changed, removed or inserted.${rest}`);
  else lines.push(`${counts}; ${counted(faults.length, 'fault')}.${rest}`);
  if (heads.found > 0)
    lines.push(`✓ ${counted(heads.found, 'head')} found: nothing before them was removed from the end.`);
  if (heads.cut > 0)
    lines.push(`${counted(heads.cut, 'head')} not checked: their links are past the retention period.`);
  lines.push(`Head: ${head}`);
  return lines.join('\n');
}
