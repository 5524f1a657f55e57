import { emailOf, objectOf, optionalText, requiredText, requiredTexts } from '../body-fields.js';
import type { PlatformAnswer, PlatformCall, PlatformRoute } from '../gate/platform-route.js';
import { invalid, notFound } from '../refusal.js';
import type { SimulatorState } from '../state.js';
import { namesOf, type User } from './user-directory.js';

/** User management (spec, User management); every call counts towards the one limit. */
export function userRoutes(state: SimulatorState): PlatformRoute[] {
  return [
    {
      operation: 'checkUser',
      method: 'POST',
      path: '/users/check',
      userManagement: true,
      handle: (call) => checkUser(state, call),
    },
    {
      operation: 'createProvider',
      method: 'POST',
      path: '/users/providers',
      userManagement: true,
      handle: (call) => createProvider(state, call),
    },
    {
      operation: 'createClient',
      method: 'POST',
      path: '/users/clients',
      userManagement: true,
      handle: (call) => createClient(state, call),
    },
    {
      operation: 'setClientProviders',
      method: 'POST',
      path: '/users/:userId/providers',
      userManagement: true,
      handle: (call) => setClientProviders(state, call),
    },
    {
      operation: 'deleteUser',
      method: 'DELETE',
      path: '/users/:userId',
      userManagement: true,
      handle: (call) => deleteUser(state, call),
    },
  ];
}

function checkUser(state: SimulatorState, call: PlatformCall): PlatformAnswer {
  const email = emailOf(requiredText(objectOf(call.body), 'email'));
  const [user] = state.users.withEmail(email);
  const body = user ? { isUserExists: true, userId: user.userId } : { isUserExists: false };
  return { status: 200, body };
}

function createProvider(state: SimulatorState, call: PlatformCall): PlatformAnswer {
  const fields = objectOf(call.body);
  const email = emailOf(requiredText(fields, 'email'));
  const names = namesOf(fields);
  const partnerUserId = optionalText(fields, 'partnerUserId');
  refuseTakenEmail(state, email);
  const user = state.users.add({ role: 'HealthcareProvider', email, ...names, partnerUserId, providerUserIds: [] });
  announceApiUser(state, user);
  const body = {
    userId: user.userId,
    inviteUrl: `${state.publicUrl}/invite/${state.random.hex(32)}`,
  };
  return { status: 201, body };
}

function createClient(state: SimulatorState, call: PlatformCall): PlatformAnswer {
  const fields = objectOf(call.body);
  const names = namesOf(fields);
  const therapist = requiredText(fields, 'therapistUserId');
  const partnerUserId = optionalText(fields, 'partnerUserId');
  const email = optionalText(fields, 'email');
  if (email !== undefined) emailOf(email);
  if (!state.users.findAs('HealthcareProvider', therapist)) {
    throw invalid('therapistUserId must be the userId of a provider.');
  }
  if (email !== undefined) refuseTakenEmail(state, email);
  const user = state.users.add({ role: 'Client', email, ...names, partnerUserId, providerUserIds: [therapist] });
  announceApiUser(state, user);
  const body = { userId: user.userId };
  return { status: 201, body };
}

function setClientProviders(state: SimulatorState, call: PlatformCall): PlatformAnswer {
  const user = userOf(state, call);
  const providerUserIds = requiredTexts(objectOf(call.body), 'providerUserIds');
  if (user.role !== 'Client') throw invalid('Only a client has providers.');
  if (!providerUserIds.every((userId) => state.users.findAs('HealthcareProvider', userId))) {
    throw invalid('providerUserIds must contain only userIds of providers.');
  }
  user.providerUserIds = [...new Set(providerUserIds)];
  return { status: 204 };
}

function deleteUser(state: SimulatorState, call: PlatformCall): PlatformAnswer {
  state.users.remove(userOf(state, call));
  return { status: 204 };
}

function userOf(state: SimulatorState, call: PlatformCall): User {
  const user = state.users.find(call.params.userId ?? '');
  if (!user) throw notFound('User');
  return user;
}

function refuseTakenEmail(state: SimulatorState, email: string): void {
  const taken = state.settings.duplicateEmails === 'reject' && state.users.withEmail(email).length > 0;
  if (taken) throw invalid('A user with this email already exists.');
}

function announceApiUser(state: SimulatorState, user: User): void {
  if (state.settings.userCreatedForApi) announceUser(state, user);
}

/** Sends USER_CREATED (spec, User events). */
export function announceUser(state: SimulatorState, { userId, partnerUserId, role }: User): void {
  const announcedRole = state.settings.userCreatedRole || role;
  const payload = { userId, externalUserId: partnerUserId, role: announcedRole };
  state.deliveries.send({ eventType: 'USER_CREATED', payload });
}
