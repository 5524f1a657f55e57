import { api, body } from '../../api/client.js';
import { ActionButton } from '../../parts/action.js';

/** Downloads everything that is stored about a client. */
async function download(externalId: string): Promise<void> {
  const file = await body(
    api.GET('/v1/clients/{externalId}/export', { params: { path: { externalId } }, parseAs: 'blob' }),
  );
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file as unknown as Blob);
  link.download = 'client-export.json';
  link.click();
  URL.revokeObjectURL(link.href);
}

export function ExportClient({ externalId }: { externalId: string }) {
  return <ActionButton label="Export" done="Exported." run={() => download(externalId)} />;
}
