import type { World } from '../../harness/world/world.js';
import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { SOAP } from '../world/mirrored-people.js';
import { ADMIN_KEY } from './app.js';

/** The answer to a request that names a former id. */
interface Moved {
  type: string;
  externalId?: string;
  pointer?: string;
}

/** Renames and merges people, who are named by paths such as `clients/c-1`. */
export function identitiesIn(world: World) {
  const post = (path: string, body: object) => world.call('POST', `/v1/${path}`, { body });
  return {
    rename: (path: string, externalId: string) => post(`${path}/rename`, { externalId }),
    merge: (path: string, into: string) => post(`${path}/merge`, { into }),
    /** Status, code, the id to use and the pointer of an answer. */
    moved: async (method: string, path: string, body?: object) => {
      const { status, body: answer } = await world.call<Moved>(method, `/v1/${path}`, body ? { body } : {});
      return [status, answer.type?.replace('urn:notebridge:problem:', ''), answer.externalId, answer.pointer];
    },
    /** The answer to a GET, without following a redirect. */
    redirect: async (path: string) => {
      const headers = { authorization: `Bearer ${ADMIN_KEY}` };
      const answer = await fetch(`${world.url}/v1/${path}`, { headers, redirect: 'manual' });
      return [answer.status, answer.headers.get('location')];
    },
    /** Requests a session from a text, and works until its notes are stored. @returns its internal id */
    newSession: async (client: string): Promise<string> => {
      const body = { provider: 'home', client, noteTemplateIds: [SOAP], input: { text: { text: `of ${client}` } } };
      const made = await world.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 60 });
      if (made.status !== 201) throw new Error(`POST /v1/sessions returned ${made.status}.`);
      await world.settle();
      return made.body.id;
    },
    sessionsOf: async (client: string) => {
      const { body } = await world.call<{ items: SessionResponse[] }>('GET', `/v1/sessions?client=${client}`);
      return body.items.map(({ id, clients }) => [id, clients]);
    },
    events: async (type: string) => {
      const { body } = await world.call<{ items: FeedEventResponse[] }>('GET', '/v1/events?limit=200');
      return body.items.filter((event) => event.type === type).map(({ subject, data }) => ({ subject, data }));
    },
    /** The actions of the audit entries about a client. */
    audited: async (client: string) => {
      const { body } = await world.call<{ items: { action: string }[] }>('GET', `/v1/audit?client=${client}&limit=100`);
      return body.items.map(({ action }) => action);
    },
  };
}
