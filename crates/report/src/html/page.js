// All of the page is there without this script. It sorts, filters, shows a number's details on hover and
// focus, copies, and keeps the choice in the address.
'use strict';
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, properties, ...children) => {
    const node = Object.assign(document.createElement(name), properties);
    node.append(...children);
    return node;
  };
  // The address: #anchor&filter=words&hide=cpu,more&sort=table:column:direction
  const [anchor, ...parts] = decodeURIComponent(location.hash.slice(1)).split('&');
  const choice = new Map(parts.map(part => part.split(/=(.*)/s).slice(0, 2)));
  const keep = () => {
    const parts = [...choice].filter(([, value]) => value).map(([name, value]) => name + '=' + value);
    const place = decodeURIComponent(location.hash.slice(1)).split('&')[0];
    history.replaceState(null, '', '#' + encodeURI([place, ...parts].join('&')));
  };
  const choose = (name, value) => { choice.set(name, value); keep(); };

  // Rows that contain all words.
  const filter = text => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of all('table.list tbody tr:not(.group)')) {
      const inside = (row.id + ' ' + row.textContent).toLowerCase();
      row.hidden = !words.every(word => inside.includes(word));
      shown += !row.hidden;
    }
    for (const body of all('table.list tbody')) body.hidden = all('tr:not(.group):not([hidden])', body).length === 0;
    for (const table of all('section.table')) table.hidden = words.length > 0 && all('tbody:not([hidden])', table).length === 0;
    count.textContent = words.length ? shown + ' rows' : '';
  };
  const input = make('input', { type: 'search', id: 'filter', placeholder: 'such as haproxy', value: choice.get('filter') || '' });
  const count = make('output', { htmlFor: 'filter' });
  input.addEventListener('input', () => { filter(input.value); choose('filter', input.value.trim()); });
  const hidden = new Set((choice.get('hide') || '').split(',').filter(Boolean));
  const boxes = [['cpu', 'CPU'], ['bound', 'bound by'], ['more', 'other metrics']]
    .filter(([name]) => document.querySelector('.c-' + name))
    .map(([name, text]) => {
      const box = make('input', { type: 'checkbox', checked: !hidden.has(name) });
      const apply = () => document.body.classList.toggle('hide-' + name, !box.checked);
      box.addEventListener('change', () => {
        apply();
        box.checked ? hidden.delete(name) : hidden.add(name);
        choose('hide', [...hidden].join(','));
      });
      apply();
      return make('label', {}, box, ' ' + text);
    });
  const tools = make('form', { className: 'tools' }, make('label', { htmlFor: 'filter' }, 'Rows with '), input, count, ...boxes);
  tools.addEventListener('submit', event => event.preventDefault());
  document.querySelector('section.suite')?.before(tools);
  if (input.value) filter(input.value);

  // Sorting: inside each group, by a number where the column has numbers. The third click restores the order.
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell?.dataset.v === undefined ? cell?.textContent.trim() || '' : Number(cell.dataset.v);
  };
  const sort = (table, column, direction) => {
    for (const body of table.tBodies) {
      const rows = [...body.rows].filter(row => !row.classList.contains('group'));
      rows.forEach((row, i) => row.dataset.i ??= i);
      const order = (a, b) => {
        if (!direction) return a.dataset.i - b.dataset.i;
        const [x, y] = [value(a, column), value(b, column)];
        if (typeof x !== typeof y) return typeof x === 'number' ? -1 : 1;
        return (typeof x === 'number' ? x - y : x.localeCompare(y)) * direction;
      };
      body.append(...rows.sort(order));
    }
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      const state = i === column && direction ? (direction > 0 ? 'ascending' : 'descending') : null;
      state ? head.setAttribute('aria-sort', state) : head.removeAttribute('aria-sort');
    });
  };
  for (const table of all('table.list')) {
    [...table.tHead.rows[0].cells].slice(0, -1).forEach((head, column) => {
      const button = make('button', { type: 'button', className: 'sort' });
      const label = [...head.childNodes].filter(node => node.nodeType === Node.TEXT_NODE);
      button.append(...label);
      head.prepend(button);
      button.addEventListener('click', () => {
        const now = head.getAttribute('aria-sort');
        const direction = now === 'ascending' ? -1 : now === 'descending' ? 0 : 1;
        sort(table, column, direction);
        choose('sort', direction ? [table.dataset.table, column, direction].join(':') : '');
      });
    });
  }
  const [sorted, column, direction] = (choice.get('sort') || '').split(':');
  const target = sorted && all('table.list').find(table => table.dataset.table === sorted);
  if (target) sort(target, Number(column), Number(direction));

  // A number's details beside it.
  const tip = make('div', { id: 'tip', hidden: true });
  tip.setAttribute('role', 'tooltip');
  document.body.append(tip);
  for (const row of all('table.list tbody tr')) {
    const number = row.querySelector('td .v');
    if (number && row.querySelector('details.all')) number.tabIndex = 0;
  }
  let owner = null;
  const show = event => {
    const number = event.target.closest?.('table.list td .v');
    if (!number || number === owner) return;
    const details = number.closest('tr').querySelector('details.all dl');
    if (!details) return;
    hide();
    owner = number;
    const row = number.closest('tr');
    tip.replaceChildren(make('strong', {}, row.cells[0].textContent), ' by its trials alone', details.cloneNode(true));
    tip.hidden = false;
    number.setAttribute('aria-describedby', 'tip');
    const box = number.getBoundingClientRect();
    const left = Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 8);
    const below = box.bottom + 6 + tip.offsetHeight < innerHeight;
    tip.style.left = Math.max(8, left) + scrollX + 'px';
    tip.style.top = Math.max(0, below ? box.bottom + 6 : box.top - tip.offsetHeight - 6) + scrollY + 'px';
  };
  const hide = () => {
    owner?.removeAttribute('aria-describedby');
    owner = null;
    tip.hidden = true;
  };
  addEventListener('mouseover', event => event.target.closest?.('td .v, #tip') ? show(event) : hide());
  addEventListener('focusin', show);
  addEventListener('focusout', hide);
  addEventListener('keydown', event => { if (event.key === 'Escape') hide(); });

  // One line of a plot at a time.
  const light = event => {
    for (const figure of all('figure.plot.one')) figure.classList.remove('one');
    const name = event.target.closest?.('figure.plot [data-name]')?.dataset.name;
    const figure = event.target.closest?.('figure.plot');
    if (!name || !figure) return;
    figure.classList.add('one');
    for (const part of all('[data-name]', figure)) part.classList.toggle('on', part.dataset.name === name);
  };
  addEventListener('mouseover', light);

  // The picture as a file, with the rules of the page that are its own.
  const own = () => [...document.styleSheets[0].cssRules].filter(rule => rule.cssText.includes('.chart')).map(rule => rule.cssText).join('\n');
  for (const figure of all('figure.picture')) {
    const svg = () => {
      const copy = figure.querySelector('.wide svg').cloneNode(true);
      const style = document.createElementNS('http://www.w3.org/2000/svg', 'style');
      style.textContent = own();
      copy.prepend(style);
      return 'data:image/svg+xml,' + encodeURIComponent(new XMLSerializer().serializeToString(copy));
    };
    const save = (name, href) => make('a', { download: name, href }).click();
    const png = async () => {
      const image = make('img', { src: svg() });
      await image.decode();
      const canvas = make('canvas', { width: 2 * image.naturalWidth, height: 2 * image.naturalHeight });
      canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
      save('linerate.png', canvas.toDataURL());
    };
    const button = (text, click) => make('button', { type: 'button', textContent: text, onclick: click });
    figure.querySelector('figcaption').append(button('Save as SVG', () => save('linerate.svg', svg())), button('Save as PNG', png));
  }

  for (const button of all('button[data-copy]')) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = 'Copied';
    });
  }
  // With a choice behind it the browser does not find the anchor; and a figure may be in a folded part.
  const go = () => {
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)).split('&')[0]);
    for (let node = place; node; node = node.parentElement) if (node.tagName === 'DETAILS') node.open = true;
    for (const row of all('.here')) row.classList.remove('here');
    place?.classList.add('here');
    place?.scrollIntoView();
  };
  // A link inside the page replaces the whole address; the choice stays.
  addEventListener('hashchange', () => { go(); if (!location.hash.includes('&')) keep(); });
  if (anchor) go();
})();
