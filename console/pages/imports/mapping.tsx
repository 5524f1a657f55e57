import { useState } from 'react';
import { api, type Schemas } from '../../api/client.js';
import { inSentence, labelOf, labelsOf } from '../../api/words.js';
import { useAction } from '../../parts/action.js';
import { DataTable, Section } from '../../parts/layout.js';
import { ErrorNote } from '../../parts/notes.js';
import { useUnsavedGuard } from '../../parts/unsaved.js';
import type { Import } from './words.js';

type File = Import['files'][number];
type MappedColumn = Schemas['MappedColumnResponse'];

/** The fields of a row. A column may also be read as the status, which marks inactive people. */
const fieldNames = (): string[] => labelsOf('personField').map(([field]) => field);

const nameOf = (field: string): string =>
  field === 'status' ? 'status (inactive people)' : inSentence(labelOf('personField', field));

/** Columns and fields of the files of one kind. */
interface Group {
  kind: File['kind'];
  files: File[];
  columns: MappedColumn[];
  /** The fields of the last import by column. */
  offered: Readonly<Record<string, string>>;
}

/** Fields by column; an empty field ignores its column. */
type Fields = Readonly<Record<string, string>>;

/** Asks for the columns of all files that wait for them. */
export function MappingForm({ view }: { view: Import }) {
  const groups = groupsOf(view);
  const [chosen, setChosen] = useState<Readonly<Record<string, Fields>>>({});
  const isChanged = Object.keys(chosen).length > 0;
  const action = useAction((columns: Record<string, string>) =>
    api.POST('/v1/imports/{id}/mapping', { params: { path: { id: view.id } }, body: { columns } }),
  );
  useUnsavedGuard(() => isChanged && !action.isSuccess);
  const fieldsOf = (group: Group) => chosen[group.kind] ?? offer(group);
  const missing = groups.flatMap((group) => missingFields(group, fieldsOf(group)));
  const isPrefixed = new Set(view.files.filter(({ mapping }) => mapping).map(({ kind }) => kind)).size > 1;
  const columns = Object.fromEntries(groups.flatMap((group) => chosenColumns(group, fieldsOf(group), isPrefixed)));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        action.mutate(columns);
      }}
    >
      {groups.map((group) => (
        <GroupTable
          key={group.kind}
          group={group}
          fields={fieldsOf(group)}
          onChange={(fields) => setChosen({ ...chosen, [group.kind]: fields })}
        />
      ))}
      {action.error && <ErrorNote error={action.error} />}
      <p>
        <button type="submit" className="primary" disabled={missing.length > 0 || action.isPending}>
          Use these columns
        </button>{' '}
        <span className="help" aria-live="polite">
          {missing.length > 0 && `Still to choose: ${missing.join(', ')}. `}
          If no columns are chosen within 24 hours, the import is cancelled.
        </span>
      </p>
    </form>
  );
}

function GroupTable(props: { group: Group; fields: Fields; onChange: (fields: Fields) => void }) {
  const { group, fields, onChange } = props;
  const { files, columns, offered } = group;
  const questions = new Set(files.flatMap(({ mapping }) => mapping?.question?.detail ?? []));
  const choose = (column: string, field: string) => {
    const others = Object.entries(fields).map(([name, other]) => [name, other === field ? '' : other]);
    onChange({ ...Object.fromEntries(others), [column]: field });
  };
  const choices = fieldNames().filter((field) => field !== 'kind' || group.kind === 'both');
  const last = Object.keys(offered).length > 0 && (
    <button type="button" onClick={() => onChange(offer(group))}>
      Use the columns of the last import
    </button>
  );
  return (
    <Section title={`Columns of ${files.map(({ name }) => name).join(', ')}`} aside={last}>
      {[...questions].map((question) => (
        <p key={question} className="note">
          {question}
        </p>
      ))}
      <DataTable
        caption="Columns"
        rows={columns}
        keyOf={({ name }) => name}
        columns={[
          ['Column', ({ name }) => name],
          ['Example', ({ example }) => <code>{example}</code>],
          [
            'Read as',
            ({ name, field }) => (
              <select
                aria-label={`Read ${name} as`}
                value={fields[name]}
                onChange={({ target }) => choose(name, target.value)}
              >
                <option value="">ignore</option>
                {[...choices, ...(field === 'status' ? [field] : [])].map((each) => (
                  <option key={each} value={each}>
                    {nameOf(each)}
                  </option>
                ))}
              </select>
            ),
          ],
          ['Note', ({ name }) => (fields[name] && fields[name] === offered[name] ? 'As in the last import' : '')],
        ]}
      />
    </Section>
  );
}

/** The files with a question, by kind. Files of one kind share their columns. */
function groupsOf({ files, offeredColumns }: Import): Group[] {
  const waiting = files.filter(({ mapping }) => mapping?.question);
  return [...new Set(waiting.map(({ kind }) => kind))].map((kind) => {
    const ofKind = waiting.filter((file) => file.kind === kind);
    const all = ofKind.flatMap(({ mapping }) => mapping?.columns ?? []);
    const columns = [...new Map(all.map((column) => [column.name, column])).values()];
    const offered = Object.entries(offeredColumns ?? {})
      .filter(([field]) => !field.includes('.') || field.startsWith(`${kind}.`))
      .map(([field, column]) => [column, field.slice(field.indexOf('.') + 1)] as const)
      .filter(([column]) => columns.some(({ name }) => name === column));
    return { kind, files: ofKind, columns, offered: Object.fromEntries(offered) };
  });
}

/** The fields of the last import, then those that the service detected. */
function offer({ columns, offered }: Group): Fields {
  const taken = Object.values(offered);
  const fieldOf = ({ name, field }: MappedColumn) => offered[name] ?? (field && !taken.includes(field) ? field : '');
  return Object.fromEntries(columns.map((column) => [column.name, fieldOf(column)]));
}

const questionFields = ({ files }: Group): string[] => [
  ...new Set(files.flatMap(({ mapping }) => mapping?.question?.fields ?? [])),
];

/** Lists the fields without a column, such as `id of clients.csv`. */
const missingFields = (group: Group, fields: Fields): string[] =>
  questionFields(group)
    .filter((field) => !Object.values(fields).includes(field))
    .map((field) => `${nameOf(field)} of ${group.files.map(({ name }) => name).join(', ')}`);

/** Columns by field, where they differ from the detected ones or were asked for. An empty column: the field is not read. */
function chosenColumns(group: Group, fields: Fields, isPrefixed: boolean): [field: string, column: string][] {
  const { kind, columns } = group;
  const prefix = isPrefixed && kind !== 'both' ? `${kind}.` : '';
  return fieldNames()
    .filter(
      (field) =>
        questionFields(group).includes(field) ||
        columns.some((column) => (column.field === field) !== (fields[column.name] === field)),
    )
    .map((field) => [`${prefix}${field}`, columns.find(({ name }) => fields[name] === field)?.name ?? '']);
}

/** Shows the mapping of the columns of a file to fields. */
export function MappingDetails({ content, mapping }: { content: string; mapping: Schemas['MappingResponse'] }) {
  const { columns, idReason, goneWords } = mapping;
  const ignored = columns.filter(({ field }) => field === null).map(({ name }) => name);
  return (
    <details>
      <summary>
        {content}; {ignored.length > 0 ? `ignored columns: ${ignored.join(', ')}` : 'all columns are read'}
      </summary>
      {idReason && <p>{idReason}</p>}
      {goneWords.length > 0 && <p>People with the status {goneWords.join(', ')} count as inactive.</p>}
      <DataTable
        caption={content}
        rows={columns}
        keyOf={({ name }) => name}
        columns={[
          ['Column', ({ name }) => name],
          ['Example', ({ example }) => <code>{example}</code>],
          ['Read as', ({ field }) => (field === null ? 'ignored' : nameOf(field))],
        ]}
      />
    </details>
  );
}
