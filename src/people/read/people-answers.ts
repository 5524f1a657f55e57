import type { FastifyReply } from 'fastify';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import type { PeopleService } from '../desired/people.service.js';
import type { PersonKind, PersonState } from '../model/person.js';
import type { PersonResponse } from '../model/person-view.js';
import type { PeopleQuery } from './people.dto.js';

/** Answers 200 when the person has reached the state that was asked for, else 202. */
export function answerWith(reply: FastifyReply, view: PersonResponse, reached: PersonState): PersonResponse {
  reply.code(view.sync.state === reached ? 200 : 202);
  return view;
}

/** One page of people, by external id. */
export async function listPage(
  people: PeopleService,
  kind: PersonKind,
  query: PeopleQuery,
): Promise<Page<PersonResponse>> {
  const [after] = decodeCursor<[string]>(query.cursor, 'string') ?? [];
  const views = await people.list(kind, query.state, query.limit + 1, after);
  return pageOf(
    views,
    query.limit,
    (view) => [view.externalId],
    (view) => view,
  );
}
