import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/**
 * A contract file with the simulator's operations, except those left out.
 *
 * @param without operations, or other parts of the file such as `events`
 * @param changes parts of operations that differ from the simulator's own contract
 */
export function contractFile(without: string[] = [], changes: Record<string, object> = {}): string {
  const source = path.resolve(__dirname, '../../simulator/contract.json');
  const contract = JSON.parse(readFileSync(source, 'utf8'));
  for (const name of without) {
    delete contract.operations[name];
    delete contract[name];
  }
  for (const [operation, change] of Object.entries(changes))
    contract.operations[operation] = { ...contract.operations[operation], ...change };
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'notebridge-contract-')), 'contract.json');
  writeFileSync(file, JSON.stringify(contract));
  return file;
}
