// The vertical axis is that of all steps, so that a line moves and not its frame. Dashes and markers are those of the legend.
(()=>{
const root=document.getElementById('microscope'),D=JSON.parse(root.querySelector('script').textContent),n=D.sites.length;
const [pick,slide]=root.querySelectorAll('select,input'),said=root.querySelector('output'),NS='http://www.w3.org/2000/svg';
const figures=[...root.querySelectorAll('figure')],maps=root.querySelector('.maps'),L=52,R=452,T=30,B=250;
const steps=[...new Set(D.arms.flatMap(a=>a.steps))].sort((a,b)=>a-b);
/* The live page's policy refuses style attributes, not the object's own. */
const el=(name,set,text)=>{const e=document.createElementNS(NS,name);
 for(const k in set)if(k==='style')e.style.cssText=set[k];else e.setAttribute(k,set[k]);
 if(text!==undefined)e.textContent=text;return e;};
const digits=v=>v===0?'0':Math.abs(v)>=1e5||Math.abs(v)<1e-3?v.toExponential(1):String(+v.toPrecision(3));
const at=(a,step)=>a.steps.reduce((k,s,i)=>s<=step?i:k,-1);
const look=a=>root.querySelector('.legend li[data-arm="'+a.arm+'"]');
const off=a=>look(a).classList.contains('off')?'display:none':'';
/* sites that begin a block have its number, others their name */
const labels=list=>list.map((s,i)=>{const m=/\.(\d+)\./.exec(s),p=i&&/\.(\d+)\./.exec(list[i-1]);
 return m?(p&&p[1]===m[1]?'':m[1]):s;});
let stat=0,range;
const fit=groups=>{let lo=Infinity,hi=-Infinity;
 for(const a of D.arms)for(const g of groups)for(const r of a.v[stat][g]||[])for(const v of r)
  if(v!==null){if(v<lo)lo=v;if(v>hi)hi=v;}
 const log=lo>0&&hi/lo>20;if(!log&&hi-lo<1e-9*Math.abs(hi)+1e-30){const d=Math.abs(hi)/2||1;lo-=d;hi+=d;}
 const f=v=>log?Math.log(v):v;return{lo,hi,log,part:v=>(f(v)-f(lo))/(f(hi)-f(lo))};};
const ticks=()=>{const{lo,hi,log}=range,t=[];
 if(log){const many=Math.log10(hi/lo)>3;
  for(let e=Math.floor(Math.log10(lo));e<=Math.log10(hi);e++)for(const k of many?[1]:[1,2,5])t.push(k*10**e);}
 else{const raw=(hi-lo)/5,p=10**Math.floor(Math.log10(raw)),d=[1,2,5,10].map(k=>k*p).find(v=>v>=raw);
  for(let k=Math.ceil(lo/d);k*d<=hi+1e-9*d;k++)t.push(k*d);}
 return t.filter(v=>v>=lo*(1-1e-9)||!log).filter(v=>v<=hi*(1+1e-9)||!log);};
const X=i=>L+(i+.5)*(R-L)/n,Y=v=>B-range.part(v)*(B-T);
const frame=(svg,y)=>{let free=-1e9;labels(D.sites).forEach((t,i)=>{const w=t.length*7.5/2;
  if(!t||X(i)-w<free||X(i)+w>478)return;free=X(i)+w+6;
  svg.append(el('text',{class:'tick','text-anchor':'middle',x:X(i),y:y+17},t));});
 svg.append(el('path',{class:'axis',d:'M'+L+','+y+'H'+R}));};
const profile=(figure,g,step)=>{
 const svg=el('svg',{class:'chart',viewBox:'0 0 480 290',role:'img','aria-label':D.stats[stat][1]});
 for(const v of ticks()){svg.append(el('path',{class:'grid',d:'M'+L+','+Y(v)+'H'+R}),
  el('text',{class:'tick','text-anchor':'end',x:L-7,y:Y(v)+4},digits(v)));}
 svg.append(el('text',{class:'unit',x:2,y:13},D.stats[stat][1]),
  el('text',{class:'unit','text-anchor':'end',x:R,y:286},'site, by depth; numbers are blocks'));
 frame(svg,B);let any=false;
 for(const a of D.arms){const k=at(a,step),row=k<0||!a.v[stat][g]?[]:a.v[stat][g][k];let d='',up=true;
  const box=el('g',{class:'s'+a.arm%8,'data-arm':a.arm,style:off(a)}),mark=look(a).querySelector('.m').getAttribute('d');
  const dash=look(a).querySelector('.l').getAttribute('stroke-dasharray')||'none';
  row.forEach((v,i)=>{if(v===null)return;d+=(up?'M':'L')+X(i).toFixed(1)+','+Y(v).toFixed(1);up=false;any=true;});
  box.append(el('path',{class:'l bold','stroke-dasharray':dash,d}));
  row.forEach((v,i)=>v===null||box.append(el('path',{class:'m',transform:'translate('+X(i)+','+Y(v)+')',d:mark})));
  svg.append(box);}
 if(!any)svg.append(el('text',{'text-anchor':'middle',x:(L+R)/2,y:(T+B)/2+10},'not measured for these tokens'));
 figure.querySelector('svg').replaceWith(svg);figure.querySelector('figcaption span').textContent='step '+step;
 const tip=figure.querySelector('.tip');svg.onpointerleave=()=>{tip.hidden=true;};
 svg.onpointermove=e=>{const b=svg.getBoundingClientRect(),i=Math.floor(((e.clientX-b.left)*480/b.width-L)/(R-L)*n);
  if(i<0||i>=n){tip.hidden=true;return;}tip.textContent=D.sites[i];
  for(const a of D.arms){const k=at(a,step),v=k<0||!a.v[stat][g]||off(a)?null:a.v[stat][g][k][i];if(v===null)continue;
   const r=document.createElement('div'),c=document.createElement('b');c.className='s'+a.arm%8;c.textContent=a.letter;
   r.append(c,' '+digits(v));tip.append(r);}
  tip.hidden=false;const f=figure.getBoundingClientRect(),x=e.clientX-f.left;
  tip.style.left=Math.max(0,x+12+tip.offsetWidth>f.width?x-12-tip.offsetWidth:x+12)+'px';tip.style.top='3.5rem';};};
/* twelve shades of the arm's colour, one path for each */
const map=(a,g,rows,own,step)=>{const all=D.sites.map((s,i)=>i).filter(i=>rows.some(r=>r[i]!==null)),m=all.length;
 const H=Math.max(90,m*9),w=(R-L)/a.steps.length,h=H/m,shade=Array(12).fill('');
 rows.forEach((r,k)=>all.forEach((site,i)=>{const v=r[site];if(v===null)return;
  shade[Math.min(11,Math.floor(own.part(v)*12))]+='M'+(L+k*w).toFixed(1)+','+(T+i*h).toFixed(1)+'h'+w.toFixed(2)+'v'+
   h.toFixed(2)+'h'+(-w).toFixed(2)+'z';}));
 const svg=el('svg',{class:'chart s'+a.arm%8,viewBox:'0 0 480 '+(T+H+24),role:'img','aria-label':D.stats[stat][1]+' over time'});
 shade.forEach((d,q)=>svg.append(el('path',{d,'shape-rendering':'crispEdges',style:'fill:var(--c);stroke:none','fill-opacity':(.06+.94*q/11).toFixed(2)})));
 let free=-1;labels(all.map(i=>D.sites[i])).forEach((t,i)=>{const y=T+(i+.5)*h+4;if(!t||y<free)return;free=y+14;
  svg.append(el('text',{class:'tick','text-anchor':'end',x:L-5,y},t.length>6?t.slice(0,5)+'…':t));});
 const k=at(a,step),last=a.steps.length-1;
 svg.append(el('rect',{class:'grid',x:L,y:T,width:R-L,height:H}),el('text',{class:'tick',x:L,y:T+H+17},'step '+a.steps[0]));
 if(last>0)svg.append(el('text',{class:'tick','text-anchor':'end',x:R,y:T+H+17},a.steps[last]));
 if(k>=0)svg.append(el('path',{class:'cross',d:'M'+(L+(k+.5)*w)+','+T+'v'+H}));
 const tip=document.createElement('div'),figure=document.createElement('figure'),said=document.createElement('figcaption');
 const who=document.createElement('b'),see=document.createElement('span');said.append(who,document.createElement('br'),see);
 who.textContent=a.letter+': '+(g?'all other tokens':'special tokens');
 see.textContent='sites from top to bottom; a row that changes its shade changes over time';
 tip.className='tip';tip.hidden=true;
 svg.onpointerleave=()=>{tip.hidden=true;};
 svg.onpointermove=e=>{const b=svg.getBoundingClientRect(),z=480/b.width,q=Math.floor(((e.clientX-b.left)*z-L)/w),
  i=all[Math.floor(((e.clientY-b.top)*z-T)/h)],v=rows[q]&&rows[q][i];tip.hidden=v===null||v===undefined;if(tip.hidden)return;
  tip.textContent=D.sites[i]+', step '+a.steps[q]+': '+digits(v);const f=figure.getBoundingClientRect(),x=e.clientX-f.left;
  tip.style.left=Math.max(0,Math.min(x+12,f.width-tip.offsetWidth))+'px';tip.style.top=(e.clientY-f.top+16)+'px';};
 figure.dataset.arm=a.arm;figure.style.cssText=off(a);figure.append(said,svg,tip);return figure;};
const draw=()=>{stat=+pick.value;range=fit([0,1]);const own=[fit([0]),fit([1])],step=steps[+slide.value];said.textContent='step '+step;
 figures.forEach((f,g)=>profile(f,g,step));maps.textContent='';
 for(const a of D.arms)a.v[stat].forEach((rows,g)=>{if(rows)maps.append(map(a,g,rows,own[g],step));});
 root.querySelector('.shades').textContent=own.map((r,g)=>r.lo>r.hi?'':(g?'Other':'Special')+' tokens: the palest shade is '+
  digits(r.lo)+', the fullest '+digits(r.hi)+(r.log?', by their logarithm. ':'. ')).join('');};
D.stats.forEach((s,i)=>{const o=document.createElement('option');o.value=i;o.textContent=s[1];pick.append(o);});
slide.max=steps.length-1;slide.value=steps.length-1;
for(const f of figures){const t=document.createElement('div');t.className='tip';t.hidden=true;f.append(t);}
pick.oninput=slide.oninput=draw;for(const e of root.querySelectorAll('[hidden]:not(.tip)'))e.hidden=false;draw();
})();
