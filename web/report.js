// Legend entries hide their arm; over a chart, the values of all bold lines at the nearest recorded x.
for(const e of document.querySelectorAll('.legend li')){
 e.setAttribute('role','button');e.tabIndex=0;e.setAttribute('aria-pressed','true');
 const flip=()=>{const a=e.dataset.arm,off=e.getAttribute('aria-pressed')==='true';
  for(const x of document.querySelectorAll('[data-arm="'+a+'"]'))
   if(x.tagName==='LI'){x.classList.toggle('off',off);x.setAttribute('aria-pressed',String(!off));}
   else x.style.display=off?'none':'';};
 e.onclick=flip;e.onkeydown=k=>{if(k.key==='Enter'||k.key===' '){k.preventDefault();flip();}};}
const digits=v=>v===0?'0':Math.abs(v)>=1e5||Math.abs(v)<1e-3?v.toExponential(2):String(+v.toPrecision(4));
for(const svg of document.querySelectorAll('svg.chart[data-x]')){
 const X=svg.dataset.x.split(' ').map(Number),Y=svg.dataset.y.split(' '),log=Y[4]==='log',y=Y.slice(0,4).map(Number);
 const inv=(a,p,l)=>{const t=(p-a[0])/(a[1]-a[0]);return l?a[2]*Math.pow(a[3]/a[2],t):a[2]+t*(a[3]-a[2]);};
 const lines=[...svg.querySelectorAll('g[data-name]')].map(g=>{
  const n=(g.querySelector('.bold').getAttribute('d').match(/-?[\d.]+/g)||[]).map(Number),p=[];
  for(let i=0;i+1<n.length;i+=2)p.push([n[i],n[i+1]]);return{g,p};});
 const tip=document.createElement('div'),cross=document.createElementNS('http://www.w3.org/2000/svg','path');
 tip.className='tip';tip.hidden=true;cross.setAttribute('class','cross');svg.parentNode.append(tip);svg.append(cross);
 const hide=()=>{tip.hidden=true;cross.setAttribute('d','');};
 svg.addEventListener('pointerleave',hide);
 svg.addEventListener('pointermove',e=>{
  const box=svg.getBoundingClientRect(),at=(e.clientX-box.left)*svg.viewBox.baseVal.width/box.width;
  const near=l=>l.p.reduce((a,b)=>Math.abs(b[0]-at)<Math.abs(a[0]-at)?b:a);
  const shown=lines.filter(l=>l.p.length&&l.g.style.display!=='none').map(l=>({l,q:near(l)}));
  if(!shown.length)return hide();
  const px=shown.reduce((a,b)=>Math.abs(b.q[0]-at)<Math.abs(a.q[0]-at)?b:a).q[0];tip.textContent='';
  const head=document.createElement('div');head.textContent=svg.dataset.xname+' '+Math.round(inv(X,px));tip.append(head);
  for(const{l,q}of shown){if(Math.abs(q[0]-px)>8)continue;const r=document.createElement('div'),b=document.createElement('b');
   b.className=l.g.getAttribute('class');b.textContent=l.g.dataset.name;r.append(b,' '+digits(inv(y,q[1],log)));tip.append(r);}
  cross.setAttribute('d','M'+px+','+y[0]+'V'+y[1]);tip.hidden=false;
  const f=svg.parentNode.getBoundingClientRect(),left=box.left-f.left+px*box.width/svg.viewBox.baseVal.width;
  tip.style.left=Math.max(0,left+12+tip.offsetWidth>f.width?left-12-tip.offsetWidth:left+12)+'px';
  tip.style.top=(box.top-f.top+30)+'px';});}
