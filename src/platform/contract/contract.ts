import type { ContractFile, OperationSettings } from './contract-schema.js';
import { factsOf, OPERATION_NAMES, type OperationName } from './operations.js';

/** The way to call an operation; `{name}` in its path, headers, query or body is a parameter of the call. */
type OperationRule = OperationSettings & Required<Pick<OperationSettings, 'headers' | 'query' | 'response'>>;

/** The platform's interface: the facts of the spec and the settings of the contract file. */
export class Contract {
  private constructor(
    /** If undefined, only initiateAuth can be called. */
    readonly apiKey: ContractFile['apiKey'],
    readonly operations: Readonly<Record<OperationName, OperationRule>>,
    /** The locations of ids in events that the spec does not show. */
    readonly events: NonNullable<ContractFile['events']>,
    /** The location of the platform's message in a refusal. */
    readonly errors: NonNullable<ContractFile['errors']>,
    private readonly templateNames: ReadonlyMap<string, string>,
  ) {}

  /** @param file a contract file without faults; the empty one adds nothing to the spec */
  static of({ apiKey, operations, events = {}, errors = {}, noteTemplates = {} }: ContractFile): Contract {
    const rules = OPERATION_NAMES.map((name) => [name, mergedRule(name, operations?.[name])]);
    const templateNames = Object.entries(noteTemplates).map(([id, name]) => [id, name.trim()] as const);
    return new Contract(apiKey, Object.fromEntries(rules), events, errors, new Map(templateNames));
  }

  /** The name of a note template; null if the contract file does not name it. */
  templateName(id: string): string | null {
    return this.templateNames.get(id) ?? null;
  }

  canCall(operation: OperationName): boolean {
    return this.missingFor(operation).length === 0;
  }

  /** Lists the missing settings of an operation, as paths into the contract file. */
  missingFor(operation: OperationName): string[] {
    const facts = factsOf(operation);
    const rule = this.operations[operation];
    const at = `operations.${operation}`;
    return [
      ...(facts.bearerAlways || this.apiKey ? [] : ['apiKey.header']),
      ...(rule.method ? [] : [`${at}.method`]),
      ...(rule.path ? [] : [`${at}.path`]),
      ...facts.needs.filter((pointer) => rule.response[pointer] === undefined).map((name) => `${at}.response.${name}`),
      ...(facts.upload && !rule.upload?.method ? [`${at}.upload.method`] : []),
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
