import type { OperationRule } from './operation-rule.js';
import { builtInRule, factsOf, OPERATION_NAMES, type OperationName } from './operations.js';
import type { EventType } from './wire-types.js';

/** How the API key is sent; without a scheme the header holds the bare key. */
export interface ApiKeyRule {
  header: string;
  scheme?: string;
}

export type OperationRules = Record<OperationName, OperationRule>;

/** JSON Pointers (RFC 6901) into the whole body of an event of which the spec shows no payload; unset ones are not read. */
export interface EventRule {
  sessionId?: string;
  processingId?: string;
}

/** The events whose payload the spec does not show. */
export const OPEN_EVENT_TYPES = ['PROCESSING_SESSION_NOTES_FINISHED'] as const satisfies EventType[];
export const EVENT_POINTERS = ['sessionId', 'processingId'] as const satisfies (keyof EventRule)[];
export type EventRules = Partial<Record<(typeof OPEN_EVENT_TYPES)[number], EventRule>>;

/** What is known of the platform's interface: what the spec shows, and what the contract file adds. */
export class Contract {
  /**
   * @param apiKey undefined: not told, so that no operation but initiateAuth can be called
   * @param events where ids stand in events that the spec does not show; none: such an event names nothing
   */
  constructor(
    readonly apiKey: ApiKeyRule | undefined,
    readonly operations: OperationRules,
    readonly events: EventRules = {},
  ) {}

  /** What holds without a contract file. */
  static builtIn(): Contract {
    const rules = OPERATION_NAMES.map((name) => [name, builtInRule(name)] as const);
    return new Contract(undefined, Object.fromEntries(rules) as OperationRules);
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
