import { readFileSync } from 'node:fs';
import { codeOf } from '../../http/problem/fault.js';
import { type ContractFile, contractFaults, type OperationSettings } from './contract-schema.js';
import { factsOf, OPERATION_NAMES, type OperationName } from './operations.js';

/** How one operation is called; `{name}` in a path, header, query or body stands for a parameter of the call. */
type OperationRule = OperationSettings & Required<Pick<OperationSettings, 'headers' | 'query' | 'response'>>;

/** What is known of the platform's interface: what the spec shows, and what the contract file adds. */
export class Contract {
  private constructor(
    /** Undefined: not known, so that no operation but initiateAuth can be called. */
    readonly apiKey: ContractFile['apiKey'],
    readonly operations: Readonly<Record<OperationName, OperationRule>>,
    /** Where ids stand in events that the spec does not show; one that is not here names nothing. */
    readonly events: NonNullable<ContractFile['events']>,
  ) {}

  /** @param file a contract file without faults; the empty one leaves what the spec shows */
  static of({ apiKey, operations, events = {} }: ContractFile): Contract {
    const rules = OPERATION_NAMES.map((name) => [name, mergedRule(name, operations?.[name])]);
    return new Contract(apiKey, Object.fromEntries(rules), events);
  }

  canCall(operation: OperationName): boolean {
    return this.missingFor(operation).length === 0;
  }

  /**
   * Names the settings that an operation still lacks, as paths into the contract file; none when it can be called.
   *
   * @param purpose `upload` also asks for what sending the file itself needs
   */
  missingFor(operation: OperationName, purpose: 'call' | 'upload' = 'call'): string[] {
    const facts = factsOf(operation);
    const rule = this.operations[operation];
    const at = `operations.${operation}`;
    return [
      ...(facts.bearerAlways || this.apiKey ? [] : ['apiKey.header']),
      ...(rule.method ? [] : [`${at}.method`]),
      ...(rule.path ? [] : [`${at}.path`]),
      ...facts.needs.filter((pointer) => rule.response[pointer] === undefined).map((name) => `${at}.response.${name}`),
      ...(purpose === 'upload' && !rule.upload?.method ? [`${at}.upload.method`] : []),
    ];
  }
}

function mergedRule(operation: OperationName, own: OperationSettings = {}): OperationRule {
  const { method, path, response, upload } = factsOf(operation);
  return {
    ...(method && { method }),
    ...(path && { path }),
    headers: {},
    query: {},
    ...own,
    response: { ...response, ...own.response },
    ...(upload && { upload: { headers: {}, ...upload, ...own.upload } }),
  };
}

/** Reads the contract file; without one, only what the spec shows is known. @throws {Error} listing every fault at once */
export function readContract(file: string | undefined): Contract {
  if (file === undefined) return Contract.of({});
  try {
    return parseContract(readFileSync(file, 'utf8'), file);
  } catch (error) {
    const code = codeOf(error);
    if (code === '') throw error;
    throw new Error(`PLATFORM_CONTRACT names ${file}, which can't be read (${code}); name a readable JSON file.`);
  }
}

/** Reads a contract from its text. @throws {Error} listing every fault at once, each with its JSON path */
export function parseContract(text: string, file: string): Contract {
  const content = parseJson(text, file);
  const faults = contractFaults(content);
  if (faults.length > 0) {
    throw new Error(`PLATFORM_CONTRACT ${file} is not usable; mend these settings:\n  ${faults.join('\n  ')}`);
  }
  return Contract.of(content as ContractFile);
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    // What follows in double quotes is of the file.
    const [said] = (error as Error).message.split('"', 1)[0]?.split(', ') ?? [];
    throw new Error(`PLATFORM_CONTRACT ${file} is no JSON: ${said || 'it holds no value'}.`);
  }
}
