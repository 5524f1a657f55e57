import { GRANTS } from '../../access/guard/grants-health.js';
import { SUBSCRIPTION_GRANTS } from '../../subscriptions/push/subscription-row.js';

/** Every table whose rows grant rights, and carry a MAC. */
export const ALL_GRANTS = [...GRANTS, SUBSCRIPTION_GRANTS] as const;
