import { useState } from 'react';
import { api, type Schemas } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import { useUnsavedGuard } from '../../parts/unsaved.js';
import { type Part, useUpload } from './upload.js';
import type { Import, Row } from './words.js';

export type Cell = keyof Schemas['ImportRowCells'];

/** A rejected row with the cells that were changed. */
interface Correction {
  row: Row;
  cells: Partial<Record<Cell, string>>;
}

export type Corrections = ReturnType<typeof useCorrections>;

/** Corrections of rejected rows, kept until they are sent, even if the page shows other rows. */
export function useCorrections() {
  const [corrections] = useState(() => new Map<number, Correction>());
  const [count, setCount] = useState(0);
  useUnsavedGuard(() => corrections.size > 0);
  const forget = (sent: readonly Correction[]) => {
    for (const one of sent) if (corrections.get(one.row.row) === one) corrections.delete(one.row.row);
    setCount(corrections.size);
  };
  const upload = useUpload(() => forget([...corrections.values()]));
  const patch = useAction(async (id: string) => {
    const sent = [...corrections.values()];
    await api.PATCH('/v1/imports/{id}/rows', { params: { path: { id } }, body: { rows: sent.map(correctedRow) } });
    forget(sent);
  });
  return {
    /** Rows that were changed. */
    count,
    isPending: upload.isPending || patch.isPending,
    error: upload.error ?? patch.error,
    cellOf: (row: Row, name: Cell) => corrections.get(row.row)?.cells[name] ?? row.cells?.[name] ?? '',
    change(row: Row, name: Cell, value: string) {
      const cells = { ...corrections.get(row.row)?.cells, [name]: value };
      if (value === row.cells?.[name]) delete cells[name];
      if (Object.keys(cells).length === 0) corrections.delete(row.row);
      else corrections.set(row.row, { row, cells });
      setCount(corrections.size);
    },
    /** Corrects rows of a plan in place; rows of an applied plan are sent as a new import. */
    send(view: Import) {
      if (view.state === 'planned') return patch.mutate(view.id);
      const parts = [partOf([...corrections.values()], view)];
      const defaultProvider = view.defaultProvider ?? undefined;
      upload.mutate({ parts, choices: { mode: 'upsert', dryRun: true, defaultProvider, correctionOf: view.id } });
    },
  };
}

type Kind = Row['kind'];

/** The kind of person in a row, from the row itself or from its file. */
export function kindOf({ kind, file }: Row, { files }: Import): Kind {
  const ofFile = files.find(({ name }) => name === file)?.kind;
  return kind ?? (ofFile === 'providers' ? 'provider' : ofFile === 'clients' ? 'client' : null);
}

const listOf = (providers: string) => providers.split('|').flatMap((one) => one.trim() || []);

/** The changed fields of a row. */
function correctedRow({ row: { row }, cells: { providers, kind, ...cells } }: Correction): Schemas['CorrectedRow'] {
  return {
    row,
    ...cells,
    ...(kind && { kind: kind as 'provider' | 'client' }),
    ...(providers !== undefined && { providers: listOf(providers) }),
  };
}

/** Corrected rows as JSON lines. Empty cells are left out, because an empty text is not a value. */
function partOf(corrections: readonly Correction[], view: Import): Part {
  const lines = corrections.map(({ row, cells }) => {
    const { kind, providers = '', ...person } = { ...row.cells, ...cells };
    const list = listOf(providers);
    const texts = Object.entries(person).flatMap(([name, text]) => (text.trim() ? [[name, text.trim()]] : []));
    return JSON.stringify({
      kind: cells.kind || (kindOf(row, view) ?? kind),
      ...Object.fromEntries(texts),
      ...(list.length > 0 && { providers: list }),
    });
  });
  const content = new Blob([lines.join('\n')], { type: 'application/x-ndjson' });
  return { part: 'file', name: 'corrected.ndjson', content };
}
