import { type ProviderReferences, TooManyReferences } from '../parse/fhir/provider-references.js';
import type { MergeReference } from '../parse/row/import-row.js';
import { rejection } from '../parse/row/rejection.js';
import { isImportableId } from '../parse/row/validate-person.js';

/** A chart that another one stands for, and the place of the resource that says so. */
export interface MergedChart {
  externalId: string;
  file: number;
  line: number;
  /** What to do if it is here. */
  hint: string;
}

type Statement = MergeReference & { file: number };
type Place = Pick<MergedChart, 'file' | 'line'>;

/** Collects the merges that the Patients of an import state, from either side. */
export class MergedCharts {
  private readonly statements: Statement[] = [];

  constructor(private readonly most: number) {}

  /** @param file its ordinal @throws TooManyReferences */
  add(merge: MergeReference, file: number): void {
    if (this.statements.length === this.most) throw new TooManyReferences(this.most);
    this.statements.push({ ...merge, file });
  }

  /** All merged charts, each with the chart at the end of its chain of merges. @param references of all files */
  resolve(references: Pick<ProviderReferences, 'clientOf'>): MergedChart[] {
    const merges = new Map<string, Place & { into: Set<string> }>();
    for (const { externalId: own, says, others, file, line } of this.statements) {
      const other = others.map((key) => references.clientOf(key)).find(isImportableId);
      const [old, survivor] = says === 'replaces' ? [other, own] : [own, other];
      if (old === undefined) continue;
      const merge = merges.get(old) ?? { file, line, into: new Set() };
      merges.set(old, merge);
      if (survivor !== undefined) merge.into.add(survivor);
    }
    return [...merges].map(([externalId, { file, line }]) => {
      const hint = rejection('merge-needed', { externalId, survivor: survivorOf(externalId, merges) }).hint;
      return { externalId, file, line, hint };
    });
  }
}

/** The chart that stands for another one. Undefined if none is named, if several are, or if merges form a circle. */
function survivorOf(
  externalId: string,
  merges: ReadonlyMap<string, { into: ReadonlySet<string> }>,
): string | undefined {
  let last = externalId;
  const passed = new Set<string>();
  for (let merge = merges.get(last); merge; merge = merges.get(last)) {
    const [into, another] = merge.into;
    if (into === undefined || another !== undefined || passed.has(into)) return undefined;
    passed.add(into);
    last = into;
  }
  return last;
}
