import { readFileSync } from 'node:fs';
import { type ApiKeyRule, Contract, type EventRules, type OperationRules } from './contract.js';
import { contractFaults } from './contract-faults.js';
import { jsonFault } from './json-syntax.js';
import type { OperationRule } from './operation-rule.js';
import { builtInRule, OPERATION_NAMES } from './operations.js';
import { codeOf } from './platform-errors.js';

/** A contract file that passed {@link contractFaults}. */
interface ContractFile {
  apiKey?: ApiKeyRule;
  operations?: Partial<Record<string, Partial<OperationRule>>>;
  events?: EventRules;
}

/**
 * Reads the contract file; without one, only what the spec shows is known.
 *
 * @param file path of the file, from `PLATFORM_CONTRACT`
 * @throws {Error} listing every fault of the file at once
 */
export function readContract(file: string | undefined): Contract {
  return file === undefined ? Contract.builtIn() : parseContract(textOf(file), file);
}

/**
 * Reads a contract from its text.
 *
 * @param file how messages name it
 * @throws {Error} listing every fault at once, each with its JSON path; for a fault of JSON itself its line and column
 */
export function parseContract(text: string, file: string): Contract {
  const json = text.replace(/^\uFEFF/, '');
  const syntax = jsonFault(json);
  if (syntax) {
    const { line, column, expected } = syntax;
    throw new Error(`PLATFORM_CONTRACT ${file} is no JSON: line ${line}, column ${column}: expected ${expected}.`);
  }
  const content: unknown = JSON.parse(json);
  const faults = contractFaults(content);
  if (faults.length > 0) {
    throw new Error(`PLATFORM_CONTRACT ${file} is not usable; mend these settings:\n  ${faults.join('\n  ')}`);
  }
  return merged(content as ContractFile);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const code = codeOf(error) ?? 'unreadable';
    throw new Error(`PLATFORM_CONTRACT names ${file}, which can't be read (${code}); name a readable JSON file.`);
  }
}

function merged(file: ContractFile): Contract {
  const rules = OPERATION_NAMES.map((name) => {
    const builtIn = builtInRule(name);
    const own = file.operations?.[name] ?? {};
    const upload = builtIn.upload && { ...builtIn.upload, ...own.upload };
    const response = { ...builtIn.response, ...own.response };
    return [name, { ...builtIn, ...own, response, ...(upload && { upload }) }] as const;
  });
  return new Contract(file.apiKey, Object.fromEntries(rules) as OperationRules, file.events);
}
