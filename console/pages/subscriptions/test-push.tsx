import { api, body, type Schemas } from '../../api/client.js';
import { inSentence, labelOf } from '../../api/words.js';
import { useAction } from '../../parts/action.js';
import { ErrorNote } from '../../parts/notes.js';

/** Describes an endpoint's answer: `Accepted (204)`, or `Failed: it answered with an error (500)`. */
export function answerInWords({ status, fault }: Pick<Schemas['PushAnswerResponse'], 'status' | 'fault'>): string {
  if (fault === null) return `Accepted (${status})`;
  return `Failed: ${inSentence(labelOf('pushFault', fault))}${status === null ? '' : ` (${status})`}`;
}

/** Sends a test event, and shows what the endpoint answers. */
export function TestPush({ id }: { id: string }) {
  const test = useAction(() => body(api.POST('/v1/subscriptions/{id}/test', { params: { path: { id } } })));
  return (
    <>
      <button type="button" disabled={test.isPending} onClick={() => test.mutate()}>
        {test.isPending ? 'Sending…' : 'Send test'}
      </button>
      {test.data && <span role="status">{answerInWords(test.data)}</span>}
      {test.error && <ErrorNote error={test.error} />}
    </>
  );
}
