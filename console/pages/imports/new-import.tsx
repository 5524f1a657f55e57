import { useState } from 'react';
import { useHistoryState } from 'wouter/use-browser-location';
import { DataTable, Head } from '../../parts/layout.js';
import { ErrorNote } from '../../parts/notes.js';
import { number } from '../../parts/values.js';
import { ImportChoices } from './import-choices.js';
import { type Choices, type Part, useUpload } from './upload.js';

const KINDS = ['providers', 'clients', 'fhir'] as const;
const SIZE = new Intl.NumberFormat(undefined, { style: 'unit', unit: 'kilobyte', maximumFractionDigits: 1 });

/** A file to send. */
export interface Chosen {
  file: File;
  /** Undefined: the service detects it. */
  kind?: (typeof KINDS)[number];
}

/** Takes files and sends them as one import, by default with the options of the import that opened this page. */
export function NewImport(props: {
  chosen: readonly Chosen[];
  onAdd: (files: FileList) => void;
  onChange: (chosen: readonly Chosen[]) => void;
}) {
  const { chosen, onAdd, onChange } = props;
  const last = useHistoryState<Partial<Choices> | null>();
  const [choices, setChoices] = useState<Choices>({ mode: 'upsert', dryRun: true, ...last });
  const sending = useUpload(() => onChange([]));
  const fhir = chosen.filter(({ kind }) => kind === 'fhir').length;
  const isMixed = fhir > 0 && fhir < chosen.length;
  const send = () =>
    sending.mutate({ parts: partsOf(chosen), choices: fhir > 0 ? { ...choices, kind: 'fhir' } : choices });
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
            if (target.files) onAdd(target.files);
            target.value = '';
          }}
        />
        <span className="help">CSV, JSON lines or FHIR R4. Send all files of one export together.</span>
      </label>
      {chosen.length > 0 && <ChosenFiles chosen={chosen} onChange={onChange} />}
      {isMixed && (
        <p className="note">FHIR and other files cannot go into one import. Import them one after the other.</p>
      )}
      <ImportChoices choices={choices} onChange={setChoices} />
      {sending.error && <ErrorNote error={sending.error} />}
      {sending.isPending && (
        <label className="progress">
          Uploading: {number(Math.floor(sending.share * 100))} %
          <progress max={1} value={sending.share} />
        </label>
      )}
      <button
        type="button"
        className="primary"
        disabled={chosen.length === 0 || isMixed || sending.isPending}
        onClick={send}
      >
        {choices.dryRun || choices.mode === 'snapshot' ? 'Upload and preview' : 'Upload and apply'}
      </button>
    </>
  );
}

/** Files of providers go first, because clients refer to them. */
function partsOf(chosen: readonly Chosen[]): Part[] {
  const isFirst = ({ kind, file }: Chosen) =>
    kind ? kind === 'providers' : /provider|practitioner|therapist|clinician|staff/i.test(file.name);
  return [...chosen.filter(isFirst), ...chosen.filter((one) => !isFirst(one))].map(({ kind, file }) => ({
    part: kind === 'providers' || kind === 'clients' ? kind : 'file',
    name: file.name,
    content: file,
  }));
}

function ChosenFiles(props: { chosen: readonly Chosen[]; onChange: (chosen: readonly Chosen[]) => void }) {
  const { chosen, onChange } = props;
  const change = (changed: Chosen, name: string) => {
    const kind = KINDS.find((each) => each === name);
    onChange(chosen.map((one) => (one === changed ? { ...one, kind } : one)));
  };
  return (
    <DataTable
      caption="Files to import"
      rows={chosen}
      keyOf={(one) => String(chosen.indexOf(one))}
      columns={[
        ['File', ({ file }) => file.name],
        ['Size', ({ file }) => SIZE.format(file.size / 1_000), 'number'],
        [
          'Contains',
          (one) => (
            <select
              aria-label={`Content of ${one.file.name}`}
              value={one.kind ?? ''}
              onChange={({ target }) => change(one, target.value)}
            >
              <option value="">detect</option>
              {KINDS.map((name) => (
                <option key={name} value={name}>
                  {name === 'fhir' ? 'FHIR' : name}
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
              aria-label={`Remove ${one.file.name}`}
              onClick={() => onChange(chosen.filter((other) => other !== one))}
            >
              Remove
            </button>
          ),
        ],
      ]}
    />
  );
}
