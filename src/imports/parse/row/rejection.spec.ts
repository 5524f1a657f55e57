import { rejection } from './rejection.js';

const hint = (...args: Parameters<typeof rejection>) => rejection(...args).hint;

describe('hints', () => {
  it('no-provider names ignored columns that may contain providers', () => {
    expect(hint('no-provider')).not.toContain('column');
    expect(hint('no-provider', { columns: ['Prim Prov', 'Sec Prov'] })).toContain(
      'The file has the columns Prim Prov, Sec Prov, which are ignored. Map one of them to providers',
    );
    expect(hint('no-provider', { columns: ['Prov'] })).toContain('The file has the column Prov, which is ignored.');
  });

  it('unknown-provider says that ids are expected, and how several are separated', () => {
    expect(hint('unknown-provider')).toMatch(/external ids of providers, not their names\./);
    expect(hint('unknown-provider', { hasSeparator: true })).toContain('separate several ids with |');
    expect(hint('unknown-provider', { isProviderRejected: true })).toContain('The row of this provider was rejected');
  });

  it('duplicate-id names the first line', () => {
    expect(hint('duplicate-id', { line: 7 })).toContain('Duplicate ID, first used in line 7.');
  });
});
