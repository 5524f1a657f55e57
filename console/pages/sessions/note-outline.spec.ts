/// <reference types="jest" />
import { outlineOf, textOf } from './note-outline.js';

const note = (text: string, nestingLevel: number, category = 'PlanAndGoals', categoryName: string | null = null) => ({
  category,
  categoryName,
  text,
  nestingLevel,
});

test('groups notes by category and nests an item at most one level below the previous one', () => {
  const notes = [
    note('first', 0),
    note('item', 1),
    note('below', 7),
    note('elsewhere', 3, 'Risk', 'Risk assessment'),
    note('second', 1),
    note('last', 0),
  ];
  const leaf = (text: string, isListed: boolean) => ({ text, isListed, items: [] });
  expect(outlineOf(notes)).toEqual([
    {
      title: 'Plan And Goals',
      items: [
        leaf('first', false),
        { text: 'item', isListed: true, items: [leaf('below', true)] },
        leaf('second', true),
        leaf('last', false),
      ],
    },
    { title: 'Risk assessment', items: [leaf('elsewhere', true)] },
  ]);
  expect(textOf(notes)).toBe(
    'Plan And Goals\nfirst\n• item\n  • below\n• second\nlast\n\nRisk assessment\n• elsewhere',
  );
});
