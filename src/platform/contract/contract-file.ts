import { readFileSync } from 'node:fs';
import { codeOf } from '../../errors/error-code.js';
import { Contract } from './contract.js';
import { type ContractFile, contractFaults } from './contract-schema.js';
import { JsonFault, type Place, placesIn } from './json-places.js';
import { factsOf, OPERATION_NAMES, type OperationName } from './operations.js';

/** A certain or probable fault of a contract file. Quotes no value. */
interface ContractFinding {
  /** The service does not start with a fault; a warning is logged. */
  severity: 'fault' | 'warning';
  /** The setting, such as `operations.checkUser.path`; empty for the whole file. */
  setting: string;
  place?: Place | undefined;
  message: string;
}

/** A checked contract file. */
interface CheckedContract {
  findings: ContractFinding[];
  /** Undefined if the file has faults. */
  contract: Contract | undefined;
}

const WITHOUT_FILE =
  'PLATFORM_CONTRACT is not set, so the service calls nothing but initiateAuth. See docs/connect-the-platform.md.';

/** Finds all faults of a contract file, for the start, doctor and the command line. */
export function checkContract(text: string): CheckedContract {
  const json = text.replace(/^\uFEFF/, '');
  try {
    const { places, repeated } = placesIn(json);
    const file: unknown = JSON.parse(json);
    const faults = contractFaults(file).map(({ path, message }): ContractFinding => {
      return { severity: 'fault', setting: path.join('.') || 'the file', place: nearestPlace(path, places), message };
    });
    const warnings = repeated.map(({ path: setting, place, first }): ContractFinding => {
      const message = `is set twice; this one counts, and line ${first.line} does not. Remove one`;
      return { severity: 'warning', setting, place, message };
    });
    if (faults.length > 0) return { findings: [...faults, ...warnings], contract: undefined };
    const contract = Contract.of(file as ContractFile);
    const doubtful = [...doubtfulMethods(contract), ...sharedUrls(contract)].map(({ setting, message }) => {
      return { severity: 'warning' as const, setting, place: nearestPlace(setting.split('.'), places), message };
    });
    return { findings: [...warnings, ...doubtful], contract };
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    const { message, place } = error;
    return { findings: [{ severity: 'fault', setting: '', place, message }], contract: undefined };
  }
}

/** The place of a setting, or of the object that lacks it. */
function nearestPlace(path: readonly string[], places: ReadonlyMap<string, Place>): Place | undefined {
  for (let length = path.length; length > 0; length -= 1) {
    const place = places.get(path.slice(0, length).join('.'));
    if (place) return place;
  }
  return undefined;
}

interface Doubt {
  setting: string;
  message: string;
}

function doubtfulMethods({ operations }: Contract): Doubt[] {
  const creates = OPERATION_NAMES.filter((name) => factsOf(name).creates && operations[name].method === 'GET');
  return creates.map((name) => ({
    setting: `operations.${name}.method`,
    message: 'is GET although the operation creates something; proxies may repeat it or answer from a cache',
  }));
}

/** Warns about operations whose requests differ only by their values. */
function sharedUrls({ operations }: Contract): Doubt[] {
  const first = new Map<string, OperationName>();
  return OPERATION_NAMES.flatMap((name) => {
    const { method, path, query, headers, body } = operations[name];
    if (!method || !path) return [];
    const call = JSON.stringify([method, path.replace(/\{[A-Za-z]+\}/g, '{}'), query, headers, body]);
    const other = first.get(call);
    if (other === undefined) first.set(call, name);
    const message = `is ${method} ${path}, as that of ${other} is`;
    return other === undefined ? [] : [{ setting: `operations.${name}.path`, message }];
  });
}

/** A finding as one line, such as `line 3, column 5: operations.checkUser.path: must begin with one /`. */
export function findingLine({ setting, place, message }: ContractFinding): string {
  const at = place ? `line ${place.line}, column ${place.column}: ` : '';
  return `${at}${[setting, message].filter((part) => part !== '').join(': ')}`;
}

/** Reads the contract file, if there is one. @throws {Error} listing all its faults */
export function readContract(file: string | undefined): { contract: Contract; warnings: string[] } {
  if (file === undefined) return { contract: Contract.of({}), warnings: [WITHOUT_FILE] };
  const { contract, findings } = checkContract(readContractText(file));
  if (contract)
    return { contract, warnings: findings.map((finding) => `PLATFORM_CONTRACT ${file}, ${findingLine(finding)}.`) };
  const lines = findings.filter(({ severity }) => severity === 'fault').map(findingLine);
  throw new Error(`PLATFORM_CONTRACT ${file} is invalid. Fix these settings:\n  ${lines.join('\n  ')}`);
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
