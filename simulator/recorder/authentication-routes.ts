import { objectOf, requiredText } from '../body-fields.js';
import type { PlatformRoute } from '../gate/platform-route.js';
import { invalid, notFound } from '../refusal.js';
import type { SimulatorState } from '../state.js';

/** Start of browser authentication (spec, Start browser authentication). */
export function authenticationRoutes(state: SimulatorState): PlatformRoute[] {
  return [
    {
      operation: 'initiateAuth',
      method: 'POST',
      path: '/authentication/initiate-auth',
      handle: (call) => {
        const user = state.users.find(requiredText(objectOf(call.body), 'userId'));
        if (!user) throw notFound('User');
        if (user.role !== 'HealthcareProvider') throw invalid('userId must be the userId of a provider.');
        const body = { otpToken: state.recorderAccess.issue(user.userId) };
        return { status: 200, body };
      },
    },
  ];
}
