import type { PersonKind } from '../../../people/model/person.js';
import type { ChosenColumns, Field, FileKind, FileMapping, MappedColumn } from '../row/import-row.js';
import { FIELDS } from '../row/import-row.js';
import { UnreadableFile } from '../row/rejection.js';
import { EMAIL_PREFERENCE, EXAMPLE_NAMES, type KnownName, knownName, plainName } from './column-names.js';
import { columnNames, filledCells, looksLikeHeader, maskedExample } from './columns.js';
import { goneWords, type StatusColumn } from './gone.js';
import { countKnown } from './layout.js';
import { isRejectedHeader, REJECTED_COLUMNS } from './rejected-cells.js';
import { couldContain, requiredFields } from './required-fields.js';

/** A mapping, and the places of its columns. */
export interface ColumnMap {
  mapping: FileMapping;
  /** The columns of each field. Only `email` has several, in order of preference for each kind of people. */
  places: Partial<Record<Exclude<Field, 'email'>, number>>;
  emails: Record<PersonKind, number[]>;
  statuses: StatusColumn[];
  /** Of a file of rejected rows: the column that must be empty. */
  code?: number;
  /** The file names no one, so that its rows link people who are known. */
  isLinkFile: boolean;
}

interface Candidate extends KnownName {
  place: number;
}

/** Finds out which column becomes which field. */
export function mapColumns(
  header: readonly string[],
  line: number,
  sample: readonly (readonly string[])[],
  options: { kind: FileKind; columns?: ChosenColumns },
): ColumnMap {
  return new Mapper(header, line, sample, options).map();
}

class Mapper {
  private readonly names: string[];
  private readonly isRejectedCsv: boolean;
  private readonly kind: FileKind;
  /** Columns by field; null: the field is read from no column. */
  private readonly chosen: Partial<Record<Field, number | null>>;
  private readonly candidates: Candidate[];
  private readonly problems: { fields: Field[]; detail: string }[] = [];
  private idReason: string | null = null;

  constructor(
    private readonly header: readonly string[],
    private readonly line: number,
    private readonly sample: readonly (readonly string[])[],
    private readonly options: { kind: FileKind; columns?: ChosenColumns },
  ) {
    this.names = columnNames(header);
    this.isRejectedCsv = isRejectedHeader(header);
    this.kind = this.isRejectedCsv || options.kind === 'fhir' ? 'both' : options.kind;
    this.chosen = this.findChosen(options.columns ?? {});
    const taken = new Set(Object.values(this.chosen));
    this.candidates = header.flatMap((name, place) => {
      const known = taken.has(place) ? undefined : knownName(plainName(name), this.kind);
      return known && this.chosen[known.field as Field] === undefined ? [{ ...known, place }] : [];
    });
  }

  map(): ColumnMap {
    const emails = { client: this.emailPlaces('client'), provider: this.emailPlaces('provider') };
    const places: ColumnMap['places'] = {};
    for (const field of FIELDS) {
      if (field === 'email') continue;
      const place = field === 'externalId' ? this.idPlace() : this.placeOf(field);
      if (place !== undefined) places[field] = place;
    }
    const statuses = this.candidates
      .filter(({ field }) => field === 'status')
      .map(({ place, name }) => ({ place, name, title: this.title(place) }));
    const fields = new Map<number, MappedColumn['field']>([
      ...statuses.map(({ place }) => [place, 'status'] as const),
      ...emails.client.map((place) => [place, 'email'] as const),
      ...Object.entries(places).map(([field, place]) => [place, field as Field] as const),
    ]);
    this.requireFields(fields);
    const mapping: FileMapping = {
      columns: this.columns(fields),
      idReason: this.idReason,
      question: this.question(),
      goneWords: goneWords(statuses),
      isRejectedCsv: this.isRejectedCsv,
    };
    const code = this.isRejectedCsv ? REJECTED_COLUMNS.indexOf('code') : undefined;
    const isLinkFile = places.firstName === undefined && places.lastName === undefined;
    return { mapping, places, emails, statuses, ...(code !== undefined && { code }), isLinkFile };
  }

  private title(place: number): string {
    return this.names[place] ?? '';
  }

  private findChosen(columns: ChosenColumns): Mapper['chosen'] {
    const chosen: Mapper['chosen'] = {};
    for (const [field, name] of Object.entries(columns) as [Field, string][]) {
      if (name === '') {
        chosen[field] = null;
        continue;
      }
      const exact = this.names.indexOf(name);
      const plain = plainName(name);
      const place = exact >= 0 || plain === '' ? exact : this.names.findIndex((each) => plainName(each) === plain);
      if (place < 0) {
        this.refuse('unknown-column', `The column chosen for ${field} does not exist. ${this.shownColumns()}`);
      }
      const other = Object.keys(chosen).find((each) => chosen[each as Field] === place);
      if (other) this.refuse('unknown-column', `One column is chosen for ${other} and ${field}. Choose two.`);
      chosen[field] = place;
    }
    return chosen;
  }

  private emailPlaces(kind: PersonKind): number[] {
    const { email } = this.chosen;
    if (email !== undefined) return email === null ? [] : [email];
    const preference = ({ name }: Candidate) => EMAIL_PREFERENCE[kind].indexOf(name);
    return this.candidates
      .filter(({ field }) => field === 'email')
      .sort((a, b) => preference(a) - preference(b) || a.place - b.place)
      .map(({ place }) => place);
  }

  /** The best column of a field. Asks if two are equally good. */
  private placeOf(field: Field): number | undefined {
    if (this.chosen[field] !== undefined) return this.chosen[field] ?? undefined;
    const ranked = this.candidates.filter((each) => each.field === field).sort((a, b) => a.rank - b.rank);
    const best = ranked.filter(({ rank }) => rank === ranked[0]?.rank);
    if (best.length < 2) return best[0]?.place;
    this.ask(field, field, best);
    return undefined;
  }

  /** The column of the external id. A wrong one would create everyone again, so any doubt is a question. */
  private idPlace(): number | undefined {
    const { externalId } = this.chosen;
    if (externalId === null) return undefined;
    if (externalId !== undefined) {
      this.idReason = `You chose "${this.title(externalId)}".`;
      return externalId;
    }
    const known = this.candidates.filter(({ field }) => field === 'externalId');
    const documented = known.filter(({ place }) => plainName(this.header[place] ?? '') === 'externalid');
    const [best, other] = documented.length > 0 ? documented : known;
    if (other) {
      this.ask('externalId', 'the id', documented.length > 0 ? documented : known);
      return undefined;
    }
    if (!best) return undefined;
    const title = this.title(best.place);
    this.idReason =
      documented.length > 0
        ? `"${title}" is the documented name.`
        : `The only column with a known name for an id is "${title}".`;
    return best.place;
  }

  private ask(field: Field, what: string, columns: readonly Candidate[]): void {
    const count = columns.length === 2 ? 'Two' : String(columns.length);
    const list = joined(columns.map(({ place }) => `"${this.title(place)}"`).slice(0, SHOWN_MAX), 'and');
    this.problems.push({ fields: [field], detail: `${count} columns could be ${what}: ${list}. Choose one.` });
  }

  /** Asks for required fields that have no column but may have one, and refuses the file if they cannot. */
  private requireFields(fields: ReadonlyMap<number, unknown>): void {
    const settled = new Set<unknown>([...fields.values(), ...this.problems.flatMap((problem) => problem.fields)]);
    const missing = requiredFields(this.kind, settled).filter((field) => !settled.has(field));
    if (missing.length === 0) return;
    const detail = `No column is known to be ${joined(missing, 'or')}.`;
    const understood = missing.map((field) => `${field} (${EXAMPLE_NAMES[field]})`).join('; ');
    const unmapped = this.header.map((_, place) => filledCells(fields.has(place) ? [] : this.sample, place));
    if (!this.isHeader() || !couldContain(missing, unmapped, this.sample.length)) {
      this.refuse('missing-column', `${detail} ${this.shownColumns()} Understood names: ${understood}.`);
    }
    this.problems.push({ fields: missing, detail: `${detail} Choose the columns.` });
  }

  /** The columns for a message, without names that are not words. Without a header, they may be a person's cells. */
  private shownColumns(): string {
    if (!this.isHeader()) return 'The first line must name the columns.';
    const words = this.names.filter((name) => /^[\p{L}][\p{L}\p{N} _.\-/()#]{0,40}$/u.test(name));
    return `The file has the columns ${words.slice(0, SHOWN_MAX).join(', ')}.`;
  }

  private isHeader(): boolean {
    return countKnown(this.header, this.kind, this.options.columns) >= 2 || looksLikeHeader(this.header, this.sample);
  }

  private question(): FileMapping['question'] {
    if (this.problems.length === 0) return null;
    return {
      fields: this.problems.flatMap(({ fields }) => fields),
      detail: this.problems.map(({ detail }) => detail).join(' '),
    };
  }

  private columns(fields: ReadonlyMap<number, MappedColumn['field']>): MappedColumn[] {
    const columns = this.names.map((name, place) => {
      const [example = ''] = filledCells(this.sample, place);
      return { name, field: fields.get(place) ?? null, example: maskedExample(example) };
    });
    // Columns that the service added are not the user's, and padding is not a column.
    return columns.filter(({ field, example }, place) => {
      const isPadding = this.header[place]?.trim() === '' && example === '';
      return field !== null || !(isPadding || this.isRejectedCsv);
    });
  }

  private refuse(code: string, hint: string): never {
    throw new UnreadableFile(code, this.line, hint);
  }
}

/** Maximum names in a message. */
const SHOWN_MAX = 30;

function joined(words: readonly string[], conjunction: string): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${conjunction} ${words.at(-1)}`;
}
