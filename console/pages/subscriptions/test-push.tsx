import { api, body } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import { ErrorNote } from '../../parts/notes.js';
import { answerInWords } from './words.js';

/** Sends a test event, and shows what the endpoint answers. */
export function TestPush({ id }: { id: string }) {
  const test = useAction(() => body(api.POST('/v1/subscriptions/{id}/test', { params: { path: { id } } })));
  return (
    <>
      <button type="button" disabled={test.isPending} onClick={() => test.mutate()}>
        {test.isPending ? 'Sending…' : 'Test'}
      </button>
      {test.data && <span role="status">{answerInWords(test.data)}</span>}
      {test.error && <ErrorNote error={test.error} />}
    </>
  );
}
