import { useState } from 'react';
import { DataTable, Head } from '../../parts/layout.js';
import { ErrorNote } from '../../parts/notes.js';
import { number } from '../../parts/values.js';
import { ImportChoices } from './import-choices.js';
import { BEGINNING, type Kind, recognise } from './recognise.js';
import { type Choices, useUpload } from './upload.js';

const KINDS: readonly Kind[] = ['providers', 'clients', 'fhir'];
const SIZE = new Intl.NumberFormat(undefined, { style: 'unit', unit: 'kilobyte', maximumFractionDigits: 1 });

/** Takes files in, says as what each is recognised, and sends them as one import. */
export function NewImport(props: {
  chosen: readonly Chosen[];
  onAdd: (files: FileList) => Promise<void>;
  onChange: (chosen: readonly Chosen[]) => void;
}) {
  const { chosen, onAdd, onChange } = props;
  const [choices, setChoices] = useState<Choices>({ mode: 'upsert', dryRun: true });
  const sending = useUpload(() => onChange([]));
  const fhir = chosen.filter(({ kind }) => kind === 'fhir').length;
  const isMixed = fhir > 0 && fhir < chosen.length;
  const parts = chosen.flatMap(({ file, kind, mediaType }) =>
    kind ? [{ kind, name: file.name, content: new Blob([file], { type: mediaType }) }] : [],
  );
  const isReady = parts.length > 0 && parts.length === chosen.length && !isMixed && !sending.isPending;
  return (
    <>
      <Head back={['/imports', 'All imports']} title="Import files" />
      <label className="drop">
        Drop files anywhere on this page, or choose them
        <input
          type="file"
          multiple
          accept=".csv,.tsv,.txt,.json,.ndjson,.jsonl"
          onChange={({ target }) => {
            if (target.files) void onAdd(target.files);
            target.value = '';
          }}
        />
        <span className="help">CSV, JSON lines or FHIR R4, all of one export at once.</span>
      </label>
      {chosen.length > 0 && <ChosenFiles chosen={chosen} onChange={onChange} />}
      {isMixed && (
        <p className="note">FHIR files and others can not go into one import: import them one after the other.</p>
      )}
      <ImportChoices choices={choices} onChange={setChoices} isFhir={fhir > 0} />
      {sending.error && <ErrorNote error={sending.error} />}
      {sending.isPending && (
        <label className="progress">
          Sending: {number(Math.floor(sending.share * 100))} %
          <progress max={1} value={sending.share} />
        </label>
      )}
      <button type="button" className="primary" disabled={!isReady} onClick={() => sending.send(parts, choices)}>
        {choices.dryRun ? 'Send and plan' : 'Send and apply'}
      </button>
    </>
  );
}

function ChosenFiles(props: { chosen: readonly Chosen[]; onChange: (chosen: readonly Chosen[]) => void }) {
  const { chosen, onChange } = props;
  const change = (changed: Chosen, kind: Kind) =>
    onChange(chosen.map((one) => (one === changed ? { ...one, kind } : one)));
  return (
    <DataTable
      caption="Files to import"
      rows={chosen}
      keyOf={(one) => String(chosen.indexOf(one))}
      columns={[
        ['File', ({ file }) => file.name],
        ['Size', ({ file }) => SIZE.format(file.size / 1_000), 'number'],
        ['Format', ({ mediaType }) => <code>{mediaType}</code>],
        [
          'Holds',
          (one) => (
            <select
              aria-label={`What ${one.file.name} holds`}
              value={one.kind ?? ''}
              onChange={({ target }) => change(one, target.value as Kind)}
            >
              {!one.kind && <option value="">not clear: choose</option>}
              {KINDS.map((name) => (
                <option key={name} value={name}>
                  {name === 'fhir' ? 'both kinds (FHIR, or a column kind)' : name}
                </option>
              ))}
            </select>
          ),
        ],
        [
          'Actions',
          (one) => (
            <button
              type="button"
              aria-label={`Leave out ${one.file.name}`}
              onClick={() => onChange(chosen.filter((other) => other !== one))}
            >
              Leave out
            </button>
          ),
        ],
      ]}
    />
  );
}

/** A file to be sent, and as what it was recognised. */
export interface Chosen {
  file: File;
  kind?: Kind;
  mediaType: string;
}

/** Looks at the beginning of a file. */
export async function look(file: File): Promise<Chosen> {
  return { file, ...recognise(file.name, await file.slice(0, BEGINNING).text()) };
}
