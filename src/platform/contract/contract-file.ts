import { readFileSync } from 'node:fs';
import { findNodeAtLocation, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import * as v from 'valibot';
import { codeOf } from '../../errors/error-code.js';
import { jsonShapeFault } from '../../text/json-text.js';
import { Contract } from './contract.js';
import { contractSchema } from './contract-schema.js';

/** A fault of a contract file. Quotes no value. */
interface ContractFault {
  /** The setting, such as `operations.checkUser.path`; empty for the whole file. */
  setting: string;
  /** Both count from 1. */
  place: { line: number; column: number };
  message: string;
}

/** Finds all faults of a contract file, or the first place that is not JSON. Only a file without faults is a contract. */
export function checkContract(text: string): { faults: ContractFault[]; contract: Contract | undefined } {
  const json = text.replace(/^\uFEFF/, '');
  const faultAt = (offset: number, message: string, setting = ''): ContractFault => {
    const lines = json.slice(0, offset).split('\n');
    return { setting, place: { line: lines.length, column: (lines.at(-1) ?? '').length + 1 }, message };
  };
  const shape = jsonShapeFault(json);
  // The parser recurses, so it does not get deep nesting.
  if (shape !== undefined) return { faults: [faultAt(0, `it is ${shape}`)], contract: undefined };
  const errors: ParseError[] = [];
  const root = parseTree(json, errors, { disallowComments: true });
  const [first] = errors.sort((one, other) => one.offset - other.offset);
  if (first) return { faults: [faultAt(first.offset, meaningOf(first))], contract: undefined };
  const { issues = [], typed, output } = v.safeParse(contractSchema, JSON.parse(json));
  const faults = issues.map(({ path = [], message }) => {
    const keys = path.map(({ key }) => key as string | number);
    return faultAt(offsetOf(root, keys), message, keys.join('.') || 'the file');
  });
  return { faults, contract: typed && faults.length === 0 ? Contract.of(output) : undefined };
}

/** Where a setting stands, or the object that lacks it. */
function offsetOf(root: Node | undefined, path: readonly (string | number)[]): number {
  const node = root && findNodeAtLocation(root, [...path]);
  if (!node && path.length > 0) return offsetOf(root, path.slice(0, -1));
  // A setting begins with its name.
  return (node?.parent?.type === 'property' ? node.parent : node)?.offset ?? 0;
}

/** Such as "comma is expected". */
function meaningOf({ error }: ParseError): string {
  const words = printParseErrorCode(error).replace(/\B[A-Z]/g, (letter) => ` ${letter}`);
  return words.toLowerCase().replace(/ expected$/, ' is expected');
}

/** A fault as one line, such as `line 3, column 5: operations.checkUser.path: must begin with one /`. */
export function faultLine({ setting, place, message }: ContractFault): string {
  return [`line ${place.line}, column ${place.column}`, setting, message].filter((part) => part !== '').join(': ');
}

/** Reads the contract file, if there is one. @throws {Error} listing all its faults */
export function readContract(file: string | undefined): Contract {
  if (file === undefined) return Contract.of({});
  const { contract, faults } = checkContract(readContractText(file));
  if (contract) return contract;
  const lines = faults.map(faultLine).join('\n  ');
  throw new Error(`PLATFORM_CONTRACT ${file} is invalid. Fix these settings:\n  ${lines}`);
}

/** @throws {Error} if the file cannot be read */
export function readContractText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(
      `PLATFORM_CONTRACT names ${file}, which can't be read (${codeOf(error)}). Name a readable JSON file.`,
    );
  }
}
