import type { ImportFile } from '../../harness/service.js';
import type { World } from '../../harness/world/world.js';
import type { Page } from '../../src/http/request/page.js';
import type { ImportResponse } from '../../src/imports/api/import-view.js';
import type { ImportRowView } from '../../src/imports/api/imports.dto.js';
import { ADMIN_KEY } from '../support/app.js';

interface Guard {
  readonly name: string;
  readonly count: number;
  readonly of: number;
}

/** The answer to a request about an import: the import or a problem. */
export type ImportBody = ImportResponse & {
  type: string;
  guards?: Guard[];
  file?: string;
  line?: number;
  code?: string;
  detail?: string;
};

export interface Uploaded {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ImportBody;
}

/** Requests about imports to the service of a world. */
export function importsIn(world: World) {
  const show = async (id: string) => (await world.call<ImportResponse>('GET', `/v1/imports/${id}`)).body;

  /** Sends a raw body. */
  async function upload(query: string, type: string, body: string | Buffer | FormData, more = {}): Promise<Uploaded> {
    await world.advance('1 ms');
    const response = await fetch(`${world.url}/v1/imports?${query}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_KEY}`, ...(type && { 'content-type': type }), ...more },
      body: Buffer.isBuffer(body) ? new Uint8Array(body) : body,
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as ImportBody };
  }

  /** Sends files as the parts of a form. The name of a part follows from the file's name, unless it is given. */
  function uploadFiles(query: string, files: readonly (ImportFile & { part?: string })[]): Promise<Uploaded> {
    const form = new FormData();
    for (const { name, type, content, part } of files) {
      const named = part ?? /^(providers|clients)\b/.exec(name)?.[0] ?? 'file';
      form.append(named, new Blob([new Uint8Array(Buffer.from(content))], { type }), name);
    }
    return upload(query, '', form);
  }

  /** Sends files as one import. @returns its id */
  async function start(query: string, files: readonly ImportFile[]): Promise<string> {
    const { status, body } = await uploadFiles(query, files);
    if (status !== 202) throw new Error(`The import was answered ${status}: ${JSON.stringify(body)}`);
    return body.id;
  }

  async function shownAs(id: string, state: ImportResponse['state']): Promise<ImportResponse> {
    const view = await show(id);
    if (view.state !== state) throw new Error(`The import is ${view.state}: ${JSON.stringify(view)}`);
    return view;
  }

  /** Sends files, and plans and applies them without making any call. */
  async function prepared(query: string, files: readonly ImportFile[], state: ImportResponse['state'] = 'running') {
    const id = await start(query, files);
    await world.work.imports();
    return shownAs(id, state);
  }

  /** Chooses the columns of an import that waits for them. */
  const map = (id: string, columns: Record<string, string>) =>
    world.call<ImportBody>('POST', `/v1/imports/${id}/mapping`, { body: { columns } });

  async function rows(id: string, query = ''): Promise<ImportRowView[]> {
    const path = `/v1/imports/${id}/rows?limit=200${query && `&${query}`}`;
    const items: ImportRowView[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const next: string = cursor && `&cursor=${encodeURIComponent(cursor)}`;
      const { body }: { body: Page<ImportRowView> } = await world.call<Page<ImportRowView>>('GET', `${path}${next}`);
      items.push(...body.items);
      cursor = body.nextCursor;
    }
    return items;
  }

  const transition = (id: string, verb: string, override?: string[]) =>
    world.call<ImportBody>('POST', `/v1/imports/${id}/${verb}`, { body: override ? { override } : {} });

  /** Works until an import is settled. A call with an unreadable answer is repeated 15 s later. */
  async function settled(id: string): Promise<void> {
    await world.settle();
    if ((await show(id)).state !== 'running') return;
    await world.advance('16 s');
    await world.settle();
  }

  return {
    show,
    upload,
    uploadFiles,
    start,
    map,
    settled,
    prepared,
    rows,
    transition,

    /** Sends a dry run or a snapshot, and plans it. */
    planned: (query: string, files: readonly ImportFile[]) => prepared(query, files, 'planned'),

    /** Sends files as one import, and works until it has ended. */
    async imported(query: string, files: readonly ImportFile[]): Promise<ImportResponse> {
      const id = await start(query, files);
      await settled(id);
      return shownAs(id, 'completed');
    },

    /** Sends files as one import, and marks everyone as mirrored without a call. */
    async mirrored(query: string, files: readonly ImportFile[]): Promise<ImportResponse> {
      const id = await start(query, files);
      await world.work.imports();
      await world.sql(
        `UPDATE people SET state = 'synced', step = NULL, due_at = NULL, origin = 'created',
           platform_user_id = 'u-' || external_id`,
      );
      await world.work.imports();
      return shownAs(id, 'completed');
    },

    /** Applies or retries an import, and works until it has ended. */
    async ended(id: string, verb: 'apply' | 'retry', override?: string[]): Promise<ImportResponse> {
      const { status, body } = await transition(id, verb, override);
      if (status >= 300) throw new Error(`${verb} was answered ${status}: ${JSON.stringify(body)}`);
      await settled(id);
      return shownAs(id, 'completed');
    },

    /** Outcome and code of each row. */
    async outcomes(id: string): Promise<(string | null)[][]> {
      return (await rows(id)).map(({ externalId, outcome, code }) => [externalId, outcome, code]);
    },

    /** The lines of the file of rejected rows. */
    async rejected(id: string): Promise<string[]> {
      const { headers, text } = await world.call('GET', `/v1/imports/${id}/rejected.csv`);
      expect(headers.get('content-disposition')).toBe('attachment; filename="rejected.csv"');
      return text.trim().split('\r\n');
    },
  };
}
