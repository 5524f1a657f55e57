import type { SeededRandom } from '../seeded-random.js';
import type { FaultRule } from './fault-rule.js';

/** The active fault rules; the first one that matches applies. */
export class Faults {
  private rules: FaultRule[] = [];

  constructor(private readonly random: SeededRandom) {}

  order(rules: readonly FaultRule[]): void {
    this.rules.push(...rules);
  }

  clear(): void {
    this.rules = [];
  }

  list(): readonly FaultRule[] {
    return this.rules;
  }

  /** The rule that applies to this request, with its count decreased; undefined if none does. */
  take(operation: string, facts: Readonly<Record<string, unknown>>): FaultRule | undefined {
    const rule = this.rules.find(
      (candidate) =>
        (candidate.operation === '*' || candidate.operation === operation) &&
        candidate.count !== 0 &&
        Object.entries(candidate.match).every(([name, expected]) => facts[name] === expected) &&
        this.random.chance(candidate.probability),
    );
    if (rule && rule.count !== null) rule.count -= 1;
    return rule;
  }
}
