import { type ComponentType, lazy } from 'react';
import type { Scope } from '../api/session.js';
import { script } from '../parts/script.js';

export interface PageEntry {
  /** Below /console; the pages of one feature begin alike. */
  path: string;
  title: string;
  /** The scope that it needs; undefined if it needs none. */
  scope: Scope | undefined;
  /** Loaded when it is first opened. */
  Page: ComponentType;
}

const page = (
  path: string,
  title: string,
  scope: Scope | undefined,
  load: () => Promise<{ default: ComponentType }>,
): PageEntry => ({
  ...{ path, title, scope },
  Page: lazy(() => script(load)),
});

/** All pages, in the order of the navigation. */
export const PAGES: readonly PageEntry[] = [
  page('/', 'Overview', 'operations', () => import('../pages/overview/overview-page.js')),
  page('/imports', 'Imports', 'imports', () => import('../pages/imports/imports-page.js')),
  page('/people', 'People', 'people:read', () => import('../pages/people/people-page.js')),
  page('/review', 'Review', 'people:read', () => import('../pages/review/review-page.js')),
  page('/sessions', 'Sessions', 'sessions:read', () => import('../pages/sessions/sessions-page.js')),
  page('/compliance', 'Compliance', 'compliance', () => import('../pages/compliance/compliance-page.js')),
  page('/deliveries', 'Deliveries', 'webhooks', () => import('../pages/deliveries/deliveries-page.js')),
  page(
    '/subscriptions',
    'Subscriptions',
    'subscriptions',
    () => import('../pages/subscriptions/subscriptions-page.js'),
  ),
  page('/audit', 'Audit', 'admin', () => import('../pages/audit/audit-page.js')),
  page('/keys', 'Keys', 'admin', () => import('../pages/keys/keys-page.js')),
  page('/browsers', 'Browsers', undefined, () => import('../pages/browsers/browsers-page.js')),
];

/** The pages that a caller may use. */
export const pagesFor = (scopes: readonly Scope[]): PageEntry[] =>
  PAGES.filter(({ scope }) => scope === undefined || scopes.includes(scope));
