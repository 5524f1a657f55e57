import type { FastifyInstance } from 'fastify';
import { USER_ROLES } from '../../src/platform/contract/wire-types.js';
import { objectOf, optionalChoice, optionalText, requiredTexts } from '../body-fields.js';
import { invalid } from '../refusal.js';
import type { SimulatorState } from '../state.js';
import { namesOf } from '../users/user-directory.js';
import { announceUser } from '../users/user-routes.js';

/** Lists users, and creates users as in the platform's own application. */
export function userAdminRoutes(app: FastifyInstance, state: SimulatorState): void {
  app.get('/users', async () => ({
    total: state.users.list().length,
    created: state.users.created,
    deleted: state.users.deleted,
    duplicates: state.users.duplicates(),
    users: state.users.list(),
  }));

  app.post('/users', async (request, reply) => {
    const fields = objectOf(request.body);
    const role = optionalChoice(fields, 'role', USER_ROLES);
    if (!role) throw invalid(`role is required: one of ${USER_ROLES.join(', ')}.`);
    const user = state.users.add({
      role,
      email: optionalText(fields, 'email'),
      ...namesOf(fields),
      partnerUserId: optionalText(fields, 'partnerUserId'),
      providerUserIds: fields.providerUserIds === undefined ? [] : requiredTexts(fields, 'providerUserIds'),
    });
    announceUser(state, user);
    return reply.code(201).send(user);
  });
}
