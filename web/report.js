// Curves are drawn again by uPlot from the numbers beside them: zoom, values under the pointer, a log axis. The drawings that came with
// the page stay for paper, and for readers without scripts. An entry of a legend hides its arm everywhere.
(() => {
 const root = document.documentElement, plots = [], hidden = new Set();
 const css = name => getComputedStyle(root).getPropertyValue(name).trim();
 const short = v => {
  if (v === 0) return '0';
  return Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? v.toExponential(2).replace(/\.?0+e/, 'e') : String(+v.toPrecision(4));
 };
 const minus = text => text.replace(/-/g, '\u2212');

 // Colour, dash and marker of an arm are those of its entry in the legend.
 const looks = new Map();
 const look = arm => {
  if (!looks.has(arm)) {
   const entry = document.querySelector('.legend li[data-arm="' + arm + '"] svg');
   const line = entry.querySelector('.l'), dash = line.getAttribute('stroke-dasharray');
   looks.set(arm, { entry, dash: dash ? dash.split(' ').map(Number) : [], mark: new Path2D(entry.querySelector('.m').getAttribute('d')) });
  }
  const l = looks.get(arm);
  l.colour = getComputedStyle(l.entry.querySelector('.l')).stroke;
  return l;
 };

 const tip = document.createElement('div');
 tip.className = 'tip';
 tip.hidden = true;

 // One table of all lines by x, and what each of its columns is.
 const table = (data, log) => {
  const low = Math.max(data.floor, 1e-15), fit = v => v === null || (log && !(v > low)) ? null : v, columns = [], parts = [];
  for (const line of data.lines) {
   const part = [line.x, line.y.map(fit)];
   columns.push({ line, what: 'y' });
   if (line.lo) {
    part.push(line.lo.map(fit), line.hi.map(fit));
    columns.push({ line, what: 'lo' }, { line, what: 'hi' });
   }
   parts.push(part);
  }
  return { columns, rows: uPlot.join(parts) };
 };

 const markers = (u, columns) => {
  const r = devicePixelRatio, c = u.ctx;
  columns.forEach((col, k) => {
   if (col.what !== 'y' || col.line.thin || !u.series[k + 1].show) return;
   const l = look(col.line.arm), x = u.data[0], y = u.data[k + 1], at = [];
   for (let i = u.series[0].idxs[0]; i <= u.series[0].idxs[1]; i++) if (y[i] !== null && y[i] !== undefined) at.push(i);
   const count = Math.min(at.length, 6), shift = (col.line.arm % 4) * 0.15 + 0.3;
   for (let i = 0; i < count; i++) {
    const j = at.length <= 6 ? at[i] : at[Math.floor((i + shift) * (at.length - 1) / count)];
    c.save();
    c.translate(u.valToPos(x[j], 'x', true), u.valToPos(y[j], 'y', true));
    c.scale(r, r);
    c.fillStyle = l.colour;
    c.strokeStyle = css('--paper');
    c.stroke(l.mark);
    c.fill(l.mark);
    c.restore();
   }
  });
 };

 const tell = (u, columns, data) => {
  const i = u.cursor.idx, rows = [];
  if (i === null || i === undefined || u.cursor.left < 0) {
   if (tip.parentNode === u.over) tip.hidden = true;
   return;
  }
  columns.forEach((col, k) => {
   const v = col.what === 'y' && !col.line.thin && u.series[k + 1].show ? u.data[k + 1][u.cursor.idxs[k + 1]] : null;
   if (v === null || v === undefined) return;
   const row = document.createElement('div'), name = document.createElement('b');
   name.style.color = look(col.line.arm).colour;
   name.textContent = col.line.name;
   row.append(name, ' ' + minus(short(v)));
   const bound = i => minus(short(u.data[k + i][u.cursor.idxs[k + 1]]));
   if (col.line.lo) row.append(' (' + bound(2) + ' to ' + bound(3) + ')');
   rows.push(row);
  });
  const head = document.createElement('div');
  head.textContent = data.x + ' ' + u.data[0][i];
  tip.replaceChildren(head, ...rows);
  u.over.append(tip);
  tip.hidden = !rows.length;
  const wide = u.over.clientWidth, left = u.cursor.left;
  const beside = left + 12 + tip.offsetWidth > wide ? left - 12 - tip.offsetWidth : left + 12;
  tip.style.left = Math.max(0, Math.min(wide - tip.offsetWidth, beside)) + 'px';
  tip.style.top = '8px';
 };

 // The value nearest to x that a line really has: lines of other runs were recorded at other steps.
 const nearest = (u, k, i) => {
  const y = u.data[k];
  if (!k || (y[i] !== null && y[i] !== undefined)) return i;
  let a = i, b = i;
  while (a >= 0 && (y[a] === null || y[a] === undefined)) a--;
  while (b < y.length && (y[b] === null || y[b] === undefined)) b++;
  if (a < 0 || b >= y.length) return a < 0 && b >= y.length ? i : a < 0 ? b : a;
  return u.data[0][i] - u.data[0][a] <= u.data[0][b] - u.data[0][i] ? a : b;
 };

 const faded = colour => colour.replace('rgb(', 'rgba(').replace(')', ',0.16)');

 const options = (p, columns) => {
  const grid = { stroke: css('--faint'), width: 1 }, soft = css('--soft'), ticks = { stroke: css('--faint'), width: 1, size: 4 };
  const font = '12px system-ui, sans-serif', wide = p.figure.clientWidth;
  const values = (u, v) => v.map(x => x === null ? '' : minus(short(x)));
  const whole = p.data.whole ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] } : {};
  return {
   width: wide, height: Math.max(220, Math.round(wide * 0.55)), legend: { show: false },
   scales: { x: { time: false }, y: { distr: p.log ? 3 : 1 } },
   axes: [{ stroke: soft, font, grid: { show: false }, ticks, size: 30, values, ...whole },
    { stroke: soft, font, grid, ticks: { show: false }, values, size: (u, v) => Math.max(30, ...(v || []).map(t => 12 + 7 * t.length)) }],
   cursor: { dataIdx: nearest, points: { show: false }, drag: { x: true, y: false }, y: false },
   series: [{}, ...columns.map(col => {
    const l = look(col.line.arm), band = col.what !== 'y';
    return { stroke: band ? 'transparent' : l.colour, width: band ? 0 : col.line.thin ? 1 : 2, alpha: col.line.thin ? 0.35 : 1,
     dash: col.line.thin ? [] : l.dash, points: { show: false }, show: !hidden.has(col.line.arm), spanGaps: false };
   })],
   bands: columns.flatMap((col, k) => col.what === 'hi' ? [{ series: [k + 1, k], fill: faded(look(col.line.arm).colour) }] : []),
   hooks: { draw: [u => markers(u, columns)], setCursor: [u => tell(u, columns, p.data)],
    setScale: [(u, key) => {
     const x = u.data[0];
     if (key === 'x') p.whole.hidden = !(u.scales.x.min > x[0] || u.scales.x.max < x[x.length - 1]);
    }] },
  };
 };

 const draw = p => {
  if (p.u) p.u.destroy();
  const { columns, rows } = table(p.data, p.log);
  p.columns = columns;
  p.u = new uPlot(options(p, columns), rows, p.place);
  p.button.setAttribute('aria-pressed', String(p.log));
 };

 const button = (text, act) => {
  const b = document.createElement('button');
  b.type = 'button';
  b.textContent = text;
  b.onclick = act;
  return b;
 };

 for (const script of document.querySelectorAll('figure.curve > script')) {
  const figure = script.parentNode, data = JSON.parse(script.textContent);
  const place = document.createElement('div'), bar = document.createElement('div');
  const values = data.lines.flatMap(l => l.y).filter(v => v !== null);
  const most = values.reduce((a, v) => Math.max(a, Math.abs(v)), 0);
  if (!(most > 1e-12 && most < 1e15) || !document.querySelector('.legend')) continue;      // uPlot finds no ticks there: the drawing stays
  const p = { figure, data, place, log: !!data.log };
  place.className = 'plot';
  bar.className = 'tools';
  const unit = document.createElement('span');
  unit.textContent = data.y ? data.y + ', by ' + data.x : 'by ' + data.x;
  p.button = button('log', () => { p.log = !p.log; draw(p); });
  p.button.hidden = !values.some(v => v > 0);
  p.whole = button('all', () => p.u.setScale('x', { min: p.u.data[0][0], max: p.u.data[0][p.u.data[0].length - 1] }));
  p.whole.hidden = true;
  bar.append(unit, p.whole, p.button);
  figure.append(bar, place);
  figure.classList.add('live');
  draw(p);
  plots.push(p);
 }
 root.classList.add('script');

 const flip = arm => {
  const off = !hidden.has(arm);
  if (off) hidden.add(arm); else hidden.delete(arm);
  for (const e of document.querySelectorAll('[data-arm="' + arm + '"]'))
   if (e.tagName === 'LI') {
    e.classList.toggle('off', off);
    e.setAttribute('aria-pressed', String(!off));
   } else e.style.display = off ? 'none' : '';
  for (const p of plots)
   p.u.batch(() => p.columns.forEach((col, k) => { if (col.line.arm === arm) p.u.setSeries(k + 1, { show: !off }); }));
 };
 for (const e of document.querySelectorAll('.legend li')) {
  e.setAttribute('role', 'button');
  e.tabIndex = 0;
  e.setAttribute('aria-pressed', 'true');
  e.onclick = () => flip(+e.dataset.arm);
  e.onkeydown = k => { if (k.key === 'Enter' || k.key === ' ') { k.preventDefault(); e.onclick(); } };
 }

 const again = () => plots.forEach(draw);
 let wide = innerWidth;
 addEventListener('resize', () => { if (innerWidth !== wide) { wide = innerWidth; again(); } });
 matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
 addEventListener('beforeprint', () => { for (const d of document.querySelectorAll('details')) d.open = true; });
})();
